package linearizability

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
)

// source is the input of every reader: bytes with a line number, a bound on
// the whole and a bound on the event being read. It holds no more than its
// buffer; what an event needs is copied out of it byte by byte and counted.
type source struct {
	r      *bufio.Reader
	line   int
	left   int64 // bytes until the whole is too long
	budget int   // bytes until the event is too long
}

const noBudget = math.MaxInt

var (
	errEventTooLong = fmt.Errorf("an event longer than %d bytes", MaxEventBytes)
	errTooMany      = fmt.Errorf("an event of more than %d values", MaxEventValues)
	errTooDeep      = fmt.Errorf("values nested deeper than %d", MaxDepth)
	errTooLong      = errors.New("the history is longer than the reader's bound of bytes")
	errTruncated    = errors.New("truncated: the file ends inside an event")
)

// readError is a failure of the reader below, which is no fault of the file.
type readError struct {
	file string
	err  error
}

func (e *readError) Error() string { return fmt.Sprintf("history: read %s: %v", e.file, e.err) }
func (e *readError) Unwrap() error { return e.err }

// begin starts to count an event.
func (s *source) begin() { s.budget = MaxEventBytes }

// end stops to count it.
func (s *source) end() { s.budget = noBudget }

// next returns the next byte; io.EOF at the end.
func (s *source) next() (byte, error) {
	c, err := s.r.ReadByte()
	if err == io.EOF {
		return 0, io.EOF
	}
	if err != nil {
		return 0, &readError{err: err}
	}
	s.left--
	s.budget--
	if s.left < 0 {
		return 0, errTooLong
	}
	if s.budget < 0 {
		return 0, errEventTooLong
	}
	if c == '\n' {
		s.line++
	}
	return c, nil
}

// peek returns the next byte without consuming it; io.EOF at the end.
func (s *source) peek() (byte, error) {
	head, err := s.r.Peek(1)
	if len(head) > 0 {
		return head[0], nil
	}
	if err == io.EOF {
		return 0, io.EOF
	}
	return 0, &readError{err: err}
}

// skipSpace skips white space; the end of the file is no error.
func (s *source) skipSpace() error {
	for {
		c, err := s.peek()
		if err == io.EOF || err == nil && !isSpace(c) {
			return nil
		}
		if err == nil {
			_, err = s.next()
		}
		if err != nil {
			return err
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// readLine appends the next line to buf, without its end; io.EOF after the
// last.
func (s *source) readLine(buf []byte) ([]byte, error) {
	s.begin()
	defer s.end()
	for {
		c, err := s.next()
		switch {
		case err == io.EOF && len(buf) > 0:
			return buf, nil
		case err != nil:
			return buf, err
		case c == '\n':
			return buf, nil
		}
		buf = append(buf, c)
	}
}
