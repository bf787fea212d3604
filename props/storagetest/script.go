package storagetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"fencepost/impl/fence"
	"fencepost/props/kit"
)

// generate draws a script of n steps for a storage with these options. Values
// are all different, so that a read says which write it found.
func generate(rnd *rand.Rand, o Options, n int) []step {
	keys := []string{"x", "y", "z"}
	var steps []step
	highest, granted := uint64(0), uint64(0)
	for len(steps) < n {
		st := step{key: keys[rnd.IntN(len(keys))], token: highest}
		switch p := rnd.IntN(100); {
		case p < 40 && o.Carry != nil: // the one that is carried, unless it was released
		case p < 45 && highest > 0: // about the highest
			st.token = highest - min(highest, uint64(rnd.IntN(2)))
		case p < 80:
			st.token = highest + uint64(rnd.IntN(2))
		case p < 95:
			st.token = uint64(rnd.IntN(13))
		case o.Carry == nil && highest < o.max()/8: // past a power of two
			st.token = max(highest, 1) << rnd.IntN(3)
		}
		switch p := rnd.IntN(100); {
		case p < 10 && o.Carry != nil:
			granted++
			highest = granted
			st = step{do: doGrant}
		case p < 13 && o.Carry != nil:
			st = step{do: doRelease}
		case p < 20:
			st = step{do: doRestart}
		case p < 35:
			st.do, st.key = doFence, ""
		case p < 65:
			st = step{do: doRead, key: st.key}
		default:
			st.do, st.value = doWrite, fmt.Sprintf("v%d", len(steps)+1)
		}
		if !o.offers(st) {
			continue
		}
		if o.Carry == nil {
			highest = max(highest, st.token)
		}
		steps = append(steps, st)
	}
	return steps
}

// minimize is a short part of steps in which fails still holds: no single step,
// nor two, can be left out. At most tries runs are spent on it.
func minimize(steps []step, tries int, fails func([]step) bool) []step {
	try := func(short []step) bool {
		if tries <= 0 || len(short) == len(steps) {
			return false
		}
		tries--
		if !fails(short) {
			return false
		}
		steps = short
		return true
	}
	without := func(i, n int) []step { return slices.Concat(steps[:i], steps[min(i+n, len(steps)):]) }
	for n := len(steps) / 2; n >= 1; {
		shrunk := false
		for i := 0; i < len(steps); {
			if try(without(i, n)) {
				shrunk = true
			} else {
				i += n
			}
		}
		if !shrunk || n > 1 {
			n /= 2
		}
	}
pairs:
	for i := range steps {
		for j := i + 1; j < len(steps); j++ {
			if try(slices.Concat(steps[:i], steps[i+1:j], steps[j+1:])) {
				goto pairs
			}
		}
	}
	// Smaller numbers and plainer names say the same in fewer words.
	for from, to := range plainer(steps) {
		renamed := slices.Clone(steps)
		for i, st := range renamed {
			if st.token == from {
				renamed[i].token = to
			}
		}
		if tries > 0 && fails(renamed) {
			steps = renamed
		}
		tries--
	}
	return steps
}

// plainer maps the tokens of steps to 1, 2, 3 in the same order, one at a time,
// the lowest first.
func plainer(steps []step) func(yield func(from, to uint64) bool) {
	var tokens []uint64
	for _, st := range steps {
		if st.token > 0 {
			tokens = append(tokens, st.token)
		}
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	return func(yield func(from, to uint64) bool) {
		for i, t := range tokens {
			if to := uint64(i + 1); t != to && !yield(t, to) {
				return
			}
		}
	}
}

// shortest minimizes a run that broke a rule, and runs the result.
func shortest(open opener, o Options, r result) result {
	steps := make([]step, len(r.lines))
	for i, l := range r.lines {
		steps[i] = l.step
	}
	best := r
	minimize(steps, 400, func(steps []step) bool {
		again := play(open, o, steps)
		if again.breach == nil || again.breach.rule != r.breach.rule {
			return false
		}
		best = again
		return true
	})
	return best
}

// scriptKind says what a file is.
const scriptKind = "storage-script"

// scriptFile is a script as a file that replays.
type scriptFile struct {
	Kind           string   `json:"kind"`
	Version        int      `json:"version"`
	Breaks         string   `json:"breaks"` // the rule that was broken when it was found
	CompareAndSwap bool     `json:"compareAndSwap,omitempty"`
	Steps          []string `json:"steps"`
}

// file is a run as a file.
func (r *result) file(o Options) *kit.File {
	f := scriptFile{Kind: scriptKind, Version: 1, Breaks: r.breach.rule.String(), CompareAndSwap: o.Carry != nil}
	for _, l := range r.lines {
		if !l.noOp {
			f.Steps = append(f.Steps, l.step.String())
		}
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return named(f.Breaks, "json", append(data, '\n'))
}

// named is a file whose name tells its content from others'.
func named(name, ext string, data []byte) *kit.File {
	f := kit.NewFile(name, ext, data)
	return &f
}

// maxFile bounds the size of a file that replays, in bytes.
const maxFile = 4 << 20

// readScript reads what file wrote.
func readScript(name string, data []byte) (scriptFile, []step, error) {
	var f scriptFile
	if len(data) > maxFile {
		return f, nil, fmt.Errorf("%s: %d bytes are more than %d", name, len(data), maxFile)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, nil, fmt.Errorf("%s: no %s: %w", name, scriptKind, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return f, nil, fmt.Errorf("%s: something follows the script", name)
	}
	switch {
	case f.Kind != scriptKind:
		return f, nil, fmt.Errorf("%s: kind: %q, want %q", name, clip(f.Kind), scriptKind)
	case f.Version != 1:
		return f, nil, fmt.Errorf("%s: version: %d, want 1", name, f.Version)
	case len(f.Steps) > maxSteps:
		return f, nil, fmt.Errorf("%s: steps: %d are more than %d", name, len(f.Steps), maxSteps)
	}
	steps := make([]step, len(f.Steps))
	for i, text := range f.Steps {
		st, err := parseStep(text)
		if err != nil {
			return f, nil, fmt.Errorf("%s: steps[%d]: %w", name, i, err)
		}
		steps[i] = st
	}
	return f, steps, nil
}

// Replay plays a counterexample that a check left as a file, of kind
// "storage-script", against the storage that open makes. The outcome is unknown
// where data is no such file, or is one of the other rule than o names. The name
// is for messages.
func Replay(open func(kit.Env) fence.KV, o Options, name string, data []byte) kit.Outcome {
	f, steps, err := readScript(name, data)
	switch {
	case err != nil:
		return kit.Outcome{Unknown: err.Error()}
	case f.CompareAndSwap != (o.Carry != nil):
		return kit.Outcome{Unknown: fmt.Sprintf("%s: compareAndSwap: %v, but Options.Carry says otherwise", name, f.CompareAndSwap)}
	}
	w := &watch{Watch: kit.NewWatch(kit.Silence)}
	open, o = w.over(open), o.unwatched()
	return w.Run(func() kit.Outcome {
		r := play(open, o, steps)
		if fail := r.failure(o, noRule); fail != nil {
			fail.File = &kit.File{Name: name, Data: data}
			return kit.Outcome{Failure: fail}
		}
		idle := 0
		for _, l := range r.lines {
			if l.noOp {
				idle++
			}
		}
		if idle == len(steps) {
			return kit.Outcome{Unknown: name + ": no step of it is one that this storage offers"}
		}
		covered := counted(len(steps), "step")
		if idle > 0 {
			covered += fmt.Sprintf(", %d of them not offered by this storage", idle)
		}
		return kit.Outcome{Covered: covered}
	})
}
