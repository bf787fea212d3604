package model

import (
	"encoding/binary"
	"fmt"
)

// Steps takes the steps out of one state. Its zero value takes states of any
// length.
type Steps struct {
	width     int    // of every state; 0: any
	states    []byte // those added, end to end
	ends      []int  // where each of them ends; unused if width says it
	labels    []uint8
	fails     []failure
	sometimes []uint64 // by property: how often it was reached
}

type failure struct {
	nth  int // among all steps since the last reset
	more int
}

// Add gives a step of kind label to state, which is copied. A step back to the
// state it comes from counts as a transition as well.
func (s *Steps) Add(label uint8, state []byte) {
	switch {
	case s.width == 0:
		s.ends = append(s.ends, len(s.states)+len(state))
		s.states = append(s.states, state...)
	case len(state) != s.width:
		panic(fmt.Sprintf("model: a state of %d bytes was added to an exploration with ExploreOptions.Width %d", len(state), s.width))
	case s.width == 8:
		// Copying through a register is several times as fast as memmove.
		s.states = binary.LittleEndian.AppendUint64(s.states, binary.LittleEndian.Uint64(state))
	default:
		s.states = append(s.states, state...)
	}
	s.labels = append(s.labels, label)
}

// Fail gives a step of kind label that breaks what must always hold. A
// violation belongs to the step, not to the state it leads to, which is not
// explored. more is how many further actions the caller will append to show it,
// 0 mostly: the path that is shortest overall is what is reported.
func (s *Steps) Fail(label uint8, more int) {
	if more < 0 {
		panic(fmt.Sprintf("model: Steps.Fail with %d more actions; it cannot be negative", more))
	}
	s.fails = append(s.fails, failure{nth: len(s.labels), more: more})
	s.labels = append(s.labels, label)
}

// Sometimes says that a step reached property i, of those that must be reached
// sometimes.
func (s *Steps) Sometimes(i int) {
	if i < 0 || i >= len(s.sometimes) {
		panic(fmt.Sprintf("model: property %d was reached, but ExploreOptions.Sometimes is %d", i, len(s.sometimes)))
	}
	s.sometimes[i]++
}

func newSteps(opts *ExploreOptions) Steps {
	return Steps{width: opts.Width, sometimes: make([]uint64, opts.Sometimes)}
}

// reset forgets the steps; how often properties were reached stays.
func (s *Steps) reset() {
	s.states, s.ends, s.labels, s.fails = s.states[:0], s.ends[:0], s.labels[:0], s.fails[:0]
}

// count is the number of states added.
func (s *Steps) count() int {
	if s.width > 0 {
		return len(s.states) / s.width
	}
	return len(s.ends)
}

// at is the i-th state added.
func (s *Steps) at(i int) []byte {
	if s.width > 0 {
		return s.states[i*s.width : (i+1)*s.width]
	}
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.states[start:s.ends[i]]
}
