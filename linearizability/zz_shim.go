package linearizability

import (
	"io"
	"iter"
)

type Stream struct{ h History; err error }

func (c Reader) Open(r io.Reader, name string) (*Stream, error) {
	h, err := c.Read(r, name)
	return &Stream{h, err}, err
}
func (s *Stream) Meta() Meta { return s.h.Meta }
func (s *Stream) Events() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for i := range s.h.Events {
			e := s.h.Events[i]
			if !yield(&e, nil) {
				return
			}
		}
	}
}
