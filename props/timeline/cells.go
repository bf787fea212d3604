package timeline

import (
	"strings"
	"unicode"
)

// clean makes text from outside fit for a terminal: nothing that moves the
// cursor, sets colours, combines or takes no room.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r) || unicode.In(r, unicode.Mn, unicode.Me):
			return '?'
		}
		return r
	}, s)
}

// wide are the ranges of runes that take two columns in a terminal, after
// Unicode's East Asian Width, in round numbers on the side of too much.
var wide = [...][2]rune{
	{0x1100, 0x115F}, {0x231A, 0x231B}, {0x23E9, 0x23FF}, {0x25FD, 0x25FE}, {0x2614, 0x27BF}, {0x2B1B, 0x2B55}, {0x2E80, 0xA4CF}, {0xA960, 0xA97F},
	{0xAC00, 0xD7FF}, {0xF900, 0xFAFF}, {0xFE10, 0xFE6F}, {0xFF00, 0xFFE6}, {0x16FE0, 0x18FFF}, {0x1AFF0, 0x1B2FF}, {0x1F000, 0x1FAFF}, {0x20000, 0x3FFFF},
}

// cells is how many columns r takes.
func cells(r rune) int {
	if r < wide[0][0] {
		return 1
	}
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

func width(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// wrap breaks text into lines of at most n columns, those after the first of
// indent columns less, between words where it can. n-indent is at least 2, the
// columns of one wide rune.
func wrap(text string, n, indent int) []string {
	var lines []string
	line, used := "", 0
	end := func() {
		lines = append(lines, line)
		line, used = "", 0
		if len(lines) == 1 {
			n -= indent
		}
	}
	for word := range strings.FieldsSeq(text) {
		if used > 0 && used+1+width(word) <= n {
			line += " " + word
			used = width(line)
			continue
		}
		if used > 0 {
			end()
		}
		for width(word) > n {
			line = head(word, n)
			word = word[len(line):]
			end()
		}
		line, used = word, width(word)
	}
	if used > 0 || len(lines) == 0 {
		end()
	}
	return lines
}

// head is as much of the beginning of s as n columns hold.
func head(s string, n int) string {
	used := 0
	for i, r := range s {
		if used += cells(r); used > n {
			return s[:i]
		}
	}
	return s
}

// short is s in at most n columns, its end replaced by mark if it is longer.
func short(s string, n int, mark string) string {
	if width(s) <= n {
		return s
	}
	return head(s, n-width(mark)) + mark
}
