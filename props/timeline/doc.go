// Package timeline draws what happened in a run for a person to read: a lane
// per node, the tenure in the store and the beliefs of clients as bars,
// messages as arrows, one sentence for each moment, and the moment at which an
// invariant broke marked. [Render] writes the text that people paste into bug
// reports, [HTML] the same story as one page.
//
// It must not know how the events came about, nor judge them: a live run emits
// the same events as a simulated one, and what they violate is the model's to
// say.
//
// Start at [Render] and its example; story.go decides what is worth a line,
// prose.go and answers.go what the line says, text.go and html.go how it looks.
package timeline

import (
	"fmt"

	"fencepost/model"
)

// Options say how a timeline looks. The zero value is good.
type Options struct {
	// Width is how many columns a line of text may take at most. Default 100;
	// what is below 60 counts as 60.
	Width int
	// ASCII keeps the text to 7-bit characters.
	ASCII bool
	// Color marks up the text with ANSI escape codes, which take no columns.
	Color bool
	// Title stands above the timeline, if any.
	Title string
	// Violation is what broke, if anything did: its moment is marked and
	// explained.
	Violation model.Violation
	// MaxRows bounds how many moments are shown: the last ones, or those up to
	// the violation and some after it. Default all of them.
	MaxRows int
}

const (
	defaultWidth = 100
	minWidth     = 60
)

func (o *Options) width() int {
	if o.Width == 0 {
		return defaultWidth
	}
	return max(o.Width, minWidth)
}

// check refuses events about nodes that no run can have.
func check(events []model.Event) error {
	for i := range events {
		e := &events[i]
		if n := max(e.Node, e.Peer, e.Owner.Node, e.Holder.Node); n >= model.MaxNodes {
			return fmt.Errorf("timeline: event %d names node %d; the highest there can be is %d", i, n, model.MaxNodes-1)
		}
	}
	return nil
}
