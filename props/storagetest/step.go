package storagetest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// kind is what a [step] does.
type kind uint8

const (
	doWrite   kind = iota + 1
	doFence        // the barrier
	doRead         //
	doRestart      // the storage crashes and comes back from its durable state
	doGrant        // compare-and-swap: the lease is granted anew, under the next token
	doRelease      // compare-and-swap: the lease is released
)

var kindNames = [...]string{doWrite: "write", doFence: "fence", doRead: "read", doRestart: "restart", doGrant: "grant", doRelease: "release"}

// step is one line of a script. Its text form:
//
//	write 2 x=v1     write v1 under key x with token 2
//	write 2 "a b"="" keys and values that are no plain words are quoted as in Go
//	fence 3          tell the storage of token 3
//	read x           what is there?
//	restart          the storage crashes and comes back
//	grant            compare-and-swap: the lease is granted anew under the next token
//	release          compare-and-swap: the lease is released
//
// What a storage does not offer, by its options, is a no-op there.
type step struct {
	do         kind
	token      uint64 // write, fence
	key, value string // write; read has a key
}

func (s step) String() string {
	switch s.do {
	case doWrite:
		return fmt.Sprintf("write %d %s=%s", s.token, word(s.key), word(s.value))
	case doFence:
		return fmt.Sprintf("fence %d", s.token)
	case doRead:
		return "read " + word(s.key)
	}
	return kindNames[s.do]
}

// word is s as it stands, or quoted where that could be misread.
func word(s string) string {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-/:", c) >= 0) {
			return strconv.QuoteToASCII(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// cutWord reads what word wrote, up to end or the end of s.
func cutWord(s string, end string) (w, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", fmt.Errorf("%s: a quote that does not end", clip(s))
		}
		w, err = strconv.Unquote(q)
		return w, s[len(q):], err
	}
	i := strings.Index(s, end)
	if i < 0 || end == "" {
		i = len(s)
	}
	if w = s[:i]; w == "" || word(w) != w {
		return "", "", fmt.Errorf("%q: want a plain word, or a quoted one", clip(w))
	}
	return w, s[i:], nil
}

// parseStep reads one step.
func parseStep(line string) (step, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	var s step
	for k, n := range kindNames {
		if n != "" && n == name {
			s.do = kind(k)
		}
	}
	var err error
	switch s.do {
	case 0:
		return s, fmt.Errorf("%q: want write, fence, read, restart, grant or release", clip(name))
	case doWrite, doFence:
		number, more, _ := strings.Cut(rest, " ")
		if s.token, err = strconv.ParseUint(number, 10, 64); err != nil {
			return s, fmt.Errorf("%s: token %q: want an integer from 0 to 1<<64-1", name, clip(number))
		}
		if rest = strings.TrimSpace(more); s.do == doFence {
			break
		}
		if s.key, rest, err = cutWord(rest, "="); err != nil {
			return s, fmt.Errorf("write: key %w", err)
		}
		if !strings.HasPrefix(rest, "=") {
			return s, fmt.Errorf("write: want key=value, not %q", clip(rest))
		}
		if s.value, rest, err = cutWord(rest[1:], ""); err != nil {
			return s, fmt.Errorf("write: value %w", err)
		}
	case doRead:
		if s.key, rest, err = cutWord(rest, ""); err != nil {
			return s, fmt.Errorf("read: key %w", err)
		}
	}
	if rest != "" {
		return s, fmt.Errorf("%s: %q is too much", name, clip(rest))
	}
	return s, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// The bounds of a script that is read.
const (
	maxSteps = 10_000
	maxLine  = 256 << 10
)

// parse reads a step a line; empty lines and what follows a # at the beginning
// of one are skipped. Errors name the line.
func parse(r io.Reader) ([]step, error) {
	var steps []step
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if steps = append(steps, s); len(steps) > maxSteps {
			return nil, fmt.Errorf("line %d: a script has at most %d steps", n, maxSteps)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("a line is longer than %d bytes: %w", maxLine, err)
	}
	return steps, nil
}

// script is parse of what the code itself says, in which "; " ends a line too.
func script(text string) []step {
	steps, err := parse(strings.NewReader(strings.ReplaceAll(text, "; ", "\n")))
	if err != nil {
		panic(err)
	}
	return steps
}
