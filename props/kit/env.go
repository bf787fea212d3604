package kit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"fencepost/impl/clock"
)

// Env is the world that one process of the code under test lives in. A crash
// ends it; the process after gets another Env, with the same durable state and
// a new clock, whose readings have nothing to do with those before unless
// [Options].SteadyClock says that it goes on.
type Env struct {
	// Clock is the only time there is: instants to compare, and timers. It
	// moves when the check says so, in no relation to the time of day. A store
	// that reads any other clock cannot be checked.
	Clock clock.Clock
	// Context ends when the process does. The next process starts at once: a
	// store with goroutines has a Close that ends them, and waits until they have.
	Context context.Context
	// Logger is shown with a failure.
	Logger *slog.Logger

	disk  *disk
	watch **Watch // the lab's
}

// Dir is a directory that survives a crash, empty at first.
func (e Env) Dir() string { return e.disk.directory() }

// Fatal gives up: the code under test could not be set up. It does not return.
func (e Env) Fatal(err error) { panic(&SetupError{err}) }

// Durable is what the code under test keeps under name and finds again after a
// crash, such as a database handle or a value that stands for a disk: the
// first process of a check makes it, and those after it get the same one. Where
// it has a Close method, that is called at the end.
func Durable[T any](e Env, name string, make func() T) T {
	v := e.disk.keep(name, func() any { return make() })
	kept, ok := v.(T)
	if !ok {
		e.Fatal(fmt.Errorf("kept %q is a %T, and was asked for as a %T: give each thing that is kept a name of its own", name, v, kept))
	}
	return kept
}

// SetupError is how [Env.Fatal] ends a check: nothing is known about the code
// under test.
type SetupError struct{ Err error }

func (e *SetupError) Error() string {
	return fmt.Sprintf("could not be set up: %v", e.Err)
}

func (e *SetupError) Unwrap() error { return e.Err }

// disk is what survives a crash.
type disk struct {
	mu    sync.Mutex
	dir   string
	kept  map[string]any
	names []string // in the order of keeping
}

func (d *disk) directory() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" {
		dir, err := os.MkdirTemp("", "fencepost-")
		if err != nil {
			panic(&SetupError{err})
		}
		d.dir = dir
	}
	return d.dir
}

func (d *disk) keep(name string, make func() any) any {
	if v, ok := d.find(name); ok {
		return v
	}
	v := make() // which may ask for the directory, or for something else that is kept
	d.mu.Lock()
	defer d.mu.Unlock()
	if first, ok := d.kept[name]; ok {
		Close(v)
		return first
	}
	if d.kept == nil {
		d.kept = map[string]any{}
	}
	d.kept[name] = v
	d.names = append(d.names, name)
	return v
}

func (d *disk) find(name string) (v any, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok = d.kept[name]
	return v, ok
}

// discard closes what is kept, latest first, and removes the directory.
func (d *disk) discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.names) - 1; i >= 0; i-- {
		Close(d.kept[d.names[i]])
	}
	if d.dir != "" {
		os.RemoveAll(d.dir)
	}
	d.kept, d.names, d.dir = nil, nil, ""
}

// Close closes v, a store or a storage, if it can be closed. What becomes of
// that does not matter to a process that is gone.
func Close(v any) {
	switch c := v.(type) {
	case interface{ Close() error }:
		c.Close()
	case interface{ Close() }:
		c.Close()
	}
}
