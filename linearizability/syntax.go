package linearizability

import (
	"errors"
	"fmt"
	"strings"
)

// The bounds of a reader. An event above them is refused, and no more of it
// than that is held in memory.
const (
	MaxEventBytes  = 1 << 20 // of one event in the file
	MaxEventValues = 1 << 16 // of one event, nested ones included
	MaxDepth       = 64      // of nested values
	maxWord        = 256     // bytes of a name: an operation, a field, a keyword
	// DefaultMaxEvents and DefaultMaxBytes bound a whole history.
	DefaultMaxEvents = 4 << 20
	DefaultMaxBytes  = 2 << 30
)

// SyntaxError says where a history cannot be read, or does not say what a
// model needs. Its text is one line.
type SyntaxError struct {
	File  string
	Line  int    // from 1
	Field string // of the event; empty if the fault is in no single field
	Msg   string // what is wrong and what is wanted
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	fmt.Fprintf(&b, "%d: ", e.Line)
	if e.Field != "" {
		b.WriteString("field " + quote(e.Field) + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// quote shows untrusted text in an error: short, and on one line.
func quote(s string) string {
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}

// fieldError is a SyntaxError whose place is known only further up.
type fieldError struct{ field, msg string }

func (e *fieldError) Error() string { return e.field + ": " + e.msg }

func badField(field, format string, args ...any) error {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

// at gives an error of one event its place in a file.
func at(err error, file string, line int) error {
	var placed *SyntaxError
	if err == nil || errors.As(err, &placed) {
		return err
	}
	var failed *readError
	if errors.As(err, &failed) {
		failed.file = file
		return failed
	}
	var bad *fieldError
	if errors.As(err, &bad) {
		return &SyntaxError{File: file, Line: line, Field: bad.field, Msg: bad.msg}
	}
	return &SyntaxError{File: file, Line: line, Msg: err.Error()}
}
