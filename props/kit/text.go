package kit

import (
	"fmt"
	"path/filepath"
	"strings"
)

// width is how long lines of prose get.
const width = 100

// Text is the failure as people read it, in at most a screen: what happened,
// the counterexample, the rule, and where to go on. paths are the files that it
// was written to, the one that replays before the one with the timeline, and
// again is the command that shows the same failure.
func (f *Failure) Text(paths []string, again string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.Rule, f.What)
	if len(f.Story) > 0 {
		b.WriteByte('\n')
		for _, line := range f.Story {
			fmt.Fprintf(&b, "    %s\n", strings.TrimRight(line, " "))
		}
	}
	b.WriteByte('\n')
	field := func(name, text string) {
		if text == "" {
			return
		}
		for i, line := range wrap(text, width-8) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "%-7s %s\n", name, line)
		}
	}
	field("rule:", f.Says)
	field("meant?", f.Hint)
	field("read:", f.Read)
	if len(paths) > 0 {
		use := "replayed first from now on"
		if filepath.Ext(paths[0]) == ".jsonl" {
			use = "a history, for: go tool fencepost check --html page.html FILE"
		}
		fmt.Fprintf(&b, "%-7s %s   (%s)\n", "file:", filepath.ToSlash(paths[0]), use)
	}
	switch {
	case len(paths) > 1:
		fmt.Fprintf(&b, "%-7s %s   (the whole timeline)\n", "", filepath.ToSlash(paths[1]))
	case f.File == nil && f.More != "":
		fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(head(f.More, 30), "\n"))
	}
	if again != "" {
		fmt.Fprintf(&b, "%-7s %s\n", "again:", again)
	}
	if f.Log != "" {
		fmt.Fprintf(&b, "log:\n%s\n", indent(clip(tail(f.Log, 5))))
	}
	return strings.TrimRight(b.String(), "\n")
}

// wrap breaks text at spaces into lines of at most n bytes, where it can.
func wrap(text string, n int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > n:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func head(text string, n int) string {
	lines := strings.Split(text, "\n")
	if len(lines) > n {
		lines = append(lines[:n], "…")
	}
	return strings.Join(lines, "\n")
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

// clip cuts long lines.
func clip(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if len(l) > 2*width {
			lines[i] = strings.ToValidUTF8(l[:2*width], "") + "…"
		}
	}
	return strings.Join(lines, "\n")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
