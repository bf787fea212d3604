package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// journal is what fence.Storage writes to, kept through a crash.
type journal struct {
	mu sync.Mutex
	d  fence.Durable
}

func (j *journal) Append(e fence.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.d.Apply(e)
}

func journaled(e kit.Env) fence.KV {
	j := kit.Durable(e, "journal", func() *journal { return &journal{} })
	return fence.Restore(j.d, j)
}

// leased is a database that has the lease too.
type leased struct {
	*fence.CompareAndSwap
	store *lease.Memory
	who   lease.Holder
	last  lease.Token
}

func compareAndSwap(e kit.Env) fence.KV {
	return kit.Durable(e, "database", func() *leased {
		m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{})
		if err != nil {
			e.Fatal(err)
		}
		return &leased{CompareAndSwap: fence.NewCompareAndSwap(m, "r"), store: m}
	})
}

// carry is called by one goroutine at a time.
func carry(ctx context.Context, kv fence.KV, token lease.Token) error {
	l := kv.(*leased)
	if l.last != 0 {
		if err := l.store.Release(ctx, "r", l.who, l.last); err != nil {
			return err
		}
		l.last = 0
	}
	if token == 0 {
		return nil
	}
	l.who = lease.Holder{Node: "n", Seq: uint64(token)}
	g, err := l.store.Acquire(ctx, "r", l.who, time.Hour)
	if err == nil && g.Token != token {
		return errors.New("the store issued another token")
	}
	l.last = g.Token
	return err
}

// table is a storage from scratch: a map and a mutex. Its zero value is empty.
type table struct {
	mu      sync.Mutex
	highest uint64
	rows    map[string]string
}

func (t *table) write(_ context.Context, token uint64, key, value string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token == 0 || token < t.highest {
		return false, nil
	}
	if t.rows == nil {
		t.rows = map[string]string{}
	}
	t.highest, t.rows[key] = token, value
	return true, nil
}

func (t *table) fence(_ context.Context, token uint64) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token == 0 || token < t.highest {
		return false, nil
	}
	t.highest = token
	return true, nil
}

func (t *table) read(_ context.Context, key string) (string, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.rows[key]
	return v, ok, nil
}

func fromScratch(e kit.Env) fence.KV {
	t := kit.Durable(e, "table", func() *table { return &table{} })
	return Funcs{Write: t.write, Fence: t.fence, Read: t.read}.KV()
}

// volatile is a table that nothing of survives.
func volatile(kit.Env) fence.KV {
	t := &table{}
	return Funcs{Write: t.write, Fence: t.fence, Read: t.read}.KV()
}

// barrierless is a table without a barrier.
func barrierless(e kit.Env) fence.KV {
	t := kit.Durable(e, "table", func() *table { return &table{} })
	return Funcs{Write: t.write, Read: t.read}.KV()
}

// unreadable is a table that cannot be read.
func unreadable(e kit.Env) fence.KV {
	t := kit.Durable(e, "table", func() *table { return &table{} })
	return Funcs{Write: t.write, Fence: t.fence}.KV()
}

// signed is a table whose tokens are in a column of 32 bits.
func signed(e kit.Env) fence.KV {
	t := kit.Durable(e, "table", func() *table { return &table{} })
	fits := func(token uint64) error {
		if token > 1<<31-1 {
			return errors.New("value out of range for type integer")
		}
		return nil
	}
	return Funcs{
		Write: func(ctx context.Context, token uint64, key, value string) (bool, error) {
			if err := fits(token); err != nil {
				return false, err
			}
			return t.write(ctx, token, key, value)
		},
		Fence: func(ctx context.Context, token uint64) (bool, error) {
			if err := fits(token); err != nil {
				return false, err
			}
			return t.fence(ctx, token)
		},
		Read: t.read,
	}.KV()
}

// file is a storage that rewrites one file at each change.
type file struct {
	mu   sync.Mutex
	path string
}

type content struct {
	Highest lease.Token
	Rows    map[string][]byte // not text, which JSON would mend
}

func oneFile(e kit.Env) fence.KV {
	return &file{path: filepath.Join(e.Dir(), "storage.json")}
}

func (f *file) load() (c content, err error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return content{Rows: map[string][]byte{}}, nil
	}
	if err != nil {
		return c, err
	}
	type row struct{ K, V []byte }
	var raw struct {
		Highest lease.Token
		Rows    []row
	}
	err = json.Unmarshal(data, &raw)
	c = content{raw.Highest, map[string][]byte{}}
	for _, r := range raw.Rows {
		c.Rows[string(r.K)] = r.V
	}
	return c, err
}

func (f *file) save(c content) error {
	type row struct{ K, V []byte }
	raw := struct {
		Highest lease.Token
		Rows    []row
	}{Highest: c.Highest}
	for k, v := range c.Rows {
		raw.Rows = append(raw.Rows, row{[]byte(k), v})
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".new", f.path)
}

func (f *file) change(ctx context.Context, token lease.Token, do func(content)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := f.load()
	if err != nil {
		return err
	}
	if token == 0 || token < c.Highest {
		return &fence.StaleTokenError{Token: token, Highest: c.Highest}
	}
	c.Highest = token
	do(c)
	return f.save(c)
}

func (f *file) Write(ctx context.Context, token lease.Token, key, value string) error {
	return f.change(ctx, token, func(c content) { c.Rows[key] = []byte(value) })
}

func (f *file) Fence(ctx context.Context, token lease.Token) error {
	return f.change(ctx, token, func(content) {})
}

func (f *file) Read(ctx context.Context, key string) (string, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.load()
	v, ok := c.Rows[key]
	return string(v), ok, err
}

// owned is a storage whose state belongs to one goroutine.
type owned chan func(*fence.Durable)

func ownedByAGoroutine(e kit.Env) fence.KV {
	d := kit.Durable(e, "disk", func() *fence.Durable { return new(fence.Durable) })
	o := make(owned)
	stopped := kit.Durable(e, "stopped", func() *sync.Mutex { return new(sync.Mutex) })
	go func() {
		stopped.Lock() // the process before has really ended
		defer stopped.Unlock()
		for {
			select {
			case f := <-o:
				f(d)
			case <-e.Context.Done():
				return
			}
		}
	}()
	return o
}

func (o owned) do(ctx context.Context, e fence.Entry) error {
	err := make(chan error, 1)
	select {
	case o <- func(d *fence.Durable) { err <- d.Apply(e) }:
		return <-err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o owned) Write(ctx context.Context, token lease.Token, key, value string) error {
	return o.do(ctx, fence.Entry{Token: token, Key: key, Value: value})
}

func (o owned) Fence(ctx context.Context, token lease.Token) error {
	return o.do(ctx, fence.Entry{Token: token, Fence: true})
}

func (o owned) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	done := make(chan struct{})
	select {
	case o <- func(d *fence.Durable) { value, ok = d.Values[key]; close(done) }:
		<-done
		return value, ok, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// optimistic puts a new version of everything in place of the one that it saw,
// and tries again where another came first. What its refusals say of the highest
// token may be later than the refusal.
type optimistic struct{ current atomic.Pointer[fence.Durable] }

func optimisticallyLocked(e kit.Env) fence.KV {
	return kit.Durable(e, "optimistic", func() *optimistic {
		o := new(optimistic)
		o.current.Store(&fence.Durable{})
		return o
	})
}

func (o *optimistic) do(ctx context.Context, e fence.Entry) error {
	for ctx.Err() == nil {
		was := o.current.Load()
		next := fence.Durable{Guard: was.Guard, Values: maps.Clone(was.Values)}
		if err := next.Apply(e); err != nil {
			_ = ctx.Err()
			return &fence.StaleTokenError{Token: e.Token, Highest: o.current.Load().Highest}
		}
		_ = ctx.Err()
		if o.current.CompareAndSwap(was, &next) {
			return nil
		}
	}
	return ctx.Err()
}

func (o *optimistic) Write(ctx context.Context, token lease.Token, key, value string) error {
	return o.do(ctx, fence.Entry{Token: token, Key: key, Value: value})
}

func (o *optimistic) Fence(ctx context.Context, token lease.Token) error {
	return o.do(ctx, fence.Entry{Token: token, Fence: true})
}

func (o *optimistic) Read(_ context.Context, key string) (value string, ok bool, err error) {
	value, ok = o.current.Load().Values[key]
	return value, ok, nil
}

// picky is a table that refuses keys and values that it cannot keep.
func picky(e kit.Env) fence.KV {
	t := kit.Durable(e, "table", func() *table { return &table{} })
	return Funcs{
		Write: func(ctx context.Context, token uint64, key, value string) (bool, error) {
			if key == "" || len(key) > 64 || len(value) > 1000 || !utf8.ValidString(key+value) || strings.Contains(key+value, "\x00") {
				return false, errors.New("invalid input")
			}
			return t.write(ctx, token, key, value)
		},
		Fence: t.fence,
		Read: func(ctx context.Context, key string) (string, bool, error) {
			if key == "" {
				return "", false, errors.New("invalid input")
			}
			return t.read(ctx, key)
		},
	}.KV()
}

// rights are storages that keep all rules.
var rights = []struct {
	name string
	open opener
	o    Options
}{
	{"fence.Storage with a journal", journaled, Options{}},
	{"fence.CompareAndSwap", compareAndSwap, Options{Carry: carry}},
	{"a map and a mutex", fromScratch, Options{}},
	{"one file", oneFile, Options{Calls: 1000}},
	{"a goroutine", ownedByAGoroutine, Options{}},
	{"optimistic locking", optimisticallyLocked, Options{}},
	{"picky", picky, Options{}},
	{"volatile", volatile, Options{Volatile: true}},
	{"without a barrier", barrierless, Options{}},
	{"unreadable", unreadable, Options{}},
	{"32 bits", signed, Options{MaxToken: 1<<31 - 1}},
}

// seed is that of the quick mode in these tests.
var effort = kit.Effort{Seed: 1}

func TestRightStoragesPass(t *testing.T) {
	for _, right := range rights {
		t.Run(right.name, func(t *testing.T) {
			start := time.Now()
			for _, c := range Checks(right.open, right.o, effort) {
				at := time.Now()
				out := c.Run()
				switch {
				case out.Failure != nil:
					t.Errorf("%s: %v\n%s\n%s", c.Name, out.Failure, joined(out.Failure.Story), out.Failure.More)
				case out.Unknown != "":
					t.Errorf("%s: unknown: %s", c.Name, out.Unknown)
				case out.Covered == "" && out.Skipped == "":
					t.Errorf("%s: came to nothing", c.Name)
				}
				t.Logf("%8v %-48s %s%s", time.Since(at).Round(time.Millisecond), c.Name, out.Covered, out.Skipped)
			}
			t.Logf("%8v in all", time.Since(start).Round(time.Millisecond))
		})
	}
}

func joined(lines []string) (s string) {
	for _, l := range lines {
		s += "    " + l + "\n"
	}
	return s
}
