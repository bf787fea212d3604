package linearizability

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// source is the input of every reader: bytes with a line number, a bound on
// the whole and a bound on the event being read. It holds no more than one
// event and what its buffer has room for besides.
type source struct {
	r      io.Reader // nil if buf is all there is
	buf    []byte    // buf[at:end] was read and not consumed
	at     int
	end    int
	err    error // what r ended with
	line   int
	left   int64 // bytes of r until the whole is too long
	budget int   // bytes until the event is too long
}

const (
	noBudget   = math.MaxInt
	bufferSize = 64 << 10
	// idleReads is how often in a row r may read nothing before it counts as
	// broken.
	idleReads = 100
)

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

func newSource(r io.Reader, maxBytes int64) *source {
	return &source{r: r, buf: make([]byte, bufferSize), line: 1, left: maxBytes, budget: noBudget}
}

// need makes at least n bytes readable at s.buf[s.at:s.end]. It fails with
// io.EOF, a *readError or errTooLong if there are fewer. It may move the
// buffer: what was sliced from it before is void.
func (s *source) need(n int) error {
	for s.end-s.at < n {
		if s.err == nil {
			s.err = s.fill(n)
		}
		if s.err != nil && s.end-s.at < n {
			return s.err
		}
	}
	return nil
}

// fill reads once, into a buffer with room for n bytes.
func (s *source) fill(n int) error {
	if s.r == nil {
		return io.EOF
	}
	if s.at > 0 {
		copy(s.buf, s.buf[s.at:s.end])
		s.at, s.end = 0, s.end-s.at
	}
	if n > len(s.buf) {
		grown := make([]byte, max(n, 2*len(s.buf)))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	room := s.buf[s.end:]
	if int64(len(room)) > s.left+1 {
		room = room[:s.left+1] // one more, to tell the end from the bound
	}
	for range idleReads {
		n, err := s.r.Read(room)
		s.end, s.left = s.end+n, s.left-int64(n)
		switch {
		case s.left < 0:
			s.end--
			return errTooLong
		case err == io.EOF:
			return io.EOF
		case err != nil:
			return &readError{err: err}
		case n > 0:
			return nil
		}
	}
	return &readError{err: io.ErrNoProgress}
}

// take consumes the next n bytes, which must be readable. They are valid until
// the next use of s.
func (s *source) take(n int) []byte {
	b := s.buf[s.at : s.at+n]
	s.at += n
	s.line += bytes.Count(b, newline)
	return b
}

var newline = []byte{'\n'}

// begin starts to count an event that is read byte by byte.
func (s *source) begin() { s.budget = MaxEventBytes }

// done stops to count it.
func (s *source) done() { s.budget = noBudget }

// next returns the next byte; io.EOF at the end.
func (s *source) next() (byte, error) {
	if s.at == s.end {
		if err := s.need(1); err != nil {
			return 0, err
		}
	}
	c := s.buf[s.at]
	if s.budget--; s.budget < 0 {
		return 0, errEventTooLong
	}
	s.at++
	if c == '\n' {
		s.line++
	}
	return c, nil
}

// skip consumes n bytes, which must be readable and on one line.
func (s *source) skip(n int) error {
	if s.budget -= n; s.budget < 0 {
		return errEventTooLong
	}
	s.at += n
	return nil
}

// peek returns the next byte without consuming it; io.EOF at the end.
func (s *source) peek() (byte, error) {
	if s.at == s.end {
		if err := s.need(1); err != nil {
			return 0, err
		}
	}
	return s.buf[s.at], nil
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

// readLine returns the next line without its end, valid until the next use of
// s; io.EOF after the last.
func (s *source) readLine() ([]byte, error) {
	for seen := 0; ; {
		if i := bytes.IndexByte(s.buf[s.at+seen:s.end], '\n'); i >= 0 {
			if seen+i > MaxEventBytes {
				return nil, errEventTooLong
			}
			return s.take(seen + i + 1)[:seen+i], nil
		}
		seen = s.end - s.at
		if seen > MaxEventBytes {
			return nil, errEventTooLong
		}
		switch err := s.need(seen + 1); {
		case err == io.EOF && seen > 0:
			return s.take(seen), nil
		case err != nil:
			return nil, err
		}
	}
}

// readObject returns the JSON object whose opening brace is next, up to its
// closing one, valid until the next use of s.
func (s *source) readObject() ([]byte, error) {
	depth, quoted := 0, false
	for n := 0; ; n++ {
		if n >= MaxEventBytes {
			return nil, errEventTooLong
		}
		if s.end-s.at <= n {
			if err := s.need(n + 1); err != nil {
				return nil, truncated(err)
			}
		}
		switch c := s.buf[s.at+n]; {
		case quoted && c == '\\':
			n++ // whatever it escapes
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return s.take(n + 1), nil
			}
		}
	}
}

func truncated(err error) error {
	if err == io.EOF {
		return errTruncated
	}
	return err
}
