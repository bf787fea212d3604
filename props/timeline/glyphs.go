package timeline

import "fencepost/model"

// glyphs are the symbols of a text timeline, one column each. The Unicode
// ones are those of code page 437 where it has one: every fixed-width font
// draws them in one column.
type glyphs struct {
	life, skip, crash                         rune // a lane: running, folded, the moment of a crash
	tenure, tenureFrom, tenureTo              rune
	belief, beliefFrom, beliefTo              rune
	fencing, paused, pausedBelief             rune
	line, dash, left, right, outEast, outWest rune // messages; the last two leave a lane to its right and left
	cross, crossTenure, refused, lost         rune
	rule, mark                                rune // over what broke, and beside its moment
	more                                      string
}

var unicodeGlyphs = glyphs{
	life: '│', skip: '┊', crash: '╳',
	tenure: '║', tenureFrom: '╥', tenureTo: '╨',
	belief: '█', beliefFrom: '▄', beliefTo: '▀',
	fencing: '▌', paused: '░', pausedBelief: '▓',
	line: '─', dash: '┄', left: '◄', right: '►', outEast: '├', outWest: '┤',
	cross: '┼', crossTenure: '╫', refused: '╳', lost: '╳', rule: '━',
	mark: '►', more: "…",
}

var asciiGlyphs = glyphs{
	life: '|', skip: ':', crash: 'X',
	tenure: 'H', tenureFrom: 'T', tenureTo: 'U',
	belief: '#', beliefFrom: '*', beliefTo: '"',
	fencing: 'f', paused: '.', pausedBelief: '%',
	line: '-', dash: '-', left: '<', right: '>', outEast: '|', outWest: '|',
	cross: '+', crossTenure: 'H', refused: 'x', lost: 'x', rule: '=',
	mark: '>', more: ".",
}

// style is how a cell looks where colour is on.
type style uint8

const (
	plain style = iota
	dim
	strong
	alarm   // violations
	warning // refusals, losses
	ofNode  // and the styles of nodes after it
)

var sgr = [...]string{plain: "0", dim: "2", strong: "1", alarm: "1;31", warning: "33", ofNode: "32", ofNode + 1: "34", ofNode + 2: "35", ofNode + 3: "36"}

// nodeStyle is the colour of a node's terms and tenures, the same in every
// lane.
func nodeStyle(n model.Node) style { return ofNode + style(n)%4 }
