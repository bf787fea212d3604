package electortest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"fencepost/props/kit"
)

// tale is what has happened, for people to read.
type tale struct {
	mu    sync.Mutex // the watchdog reads it when the world is stuck
	lines []line
	asked line // what was asked last, until that is told
	log   kit.Log
}

type line struct {
	at, last  time.Duration
	who, what string
	key       string // of what is routine: equal lines, with nothing else in between, become one
	more      int    // how many more
	marked    bool
}

func (t *tale) add(at time.Duration, who, what, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.lines) - 1; i >= 0 && key != "" && t.lines[i].key != ""; i-- {
		if l := &t.lines[i]; l.key == key && l.who == who {
			l.more++
			l.last = at
			return
		}
	}
	t.lines = append(t.lines, line{at: at, who: who, what: what, key: key})
}

// asks notes a request before it is told of, in case that never happens.
func (t *tale) asks(at time.Duration, who, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = line{at: at, who: who, what: what}
}

// taken notes that what was asked will be told.
func (t *tale) taken() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = line{}
}

func (t *tale) mark(at time.Duration, who, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(what, "the "), who+" "); ok {
		what = rest
	} else {
		who = "check"
	}
	if n := len(t.lines); n > 0 && t.lines[n-1].at == at && t.lines[n-1].who == who && strings.HasPrefix(what, t.lines[n-1].what) {
		t.lines = t.lines[:n-1] // the mark says it all
	}
	t.lines = append(t.lines, line{at: at, who: who, what: what, marked: true})
}

const (
	firstLines = 3
	mostLines  = 11
)

// story is the tale in columns, up to the marked line, without its middle if
// it is long.
func (t *tale) story() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if i := slices.IndexFunc(lines, func(l line) bool { return l.marked }); i >= 0 {
		lines = lines[:i+1]
	}
	if left := len(lines) - mostLines + 1; left > 1 {
		rest := lines[firstLines+left:]
		lines = append(slices.Clone(lines[:firstLines]), line{at: lines[firstLines].at, who: "…", what: fmt.Sprintf("%d lines left out", left)})
		lines = append(lines, rest...)
	}
	wide, wider := 0, 0
	for _, l := range lines {
		wide, wider = max(wide, utf8.RuneCountInString(l.at.String())), max(wider, utf8.RuneCountInString(l.who))
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		what := l.what
		if l.more > 0 {
			what += fmt.Sprintf("; %d more like it until %v", l.more, l.last)
		}
		if l.marked {
			what += " ◄"
		}
		out[i] = fmt.Sprintf("%*s  %-*s  %s", wide, l.at, wider, l.who, what)
	}
	return out
}
