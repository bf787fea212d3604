package leasesql_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
)

// A candidate is a process that the tests kill with SIGKILL. It campaigns,
// fences, and writes numbered values under its token, until it is killed or its
// standard input ends. Its standard output is the history of what it was
// answered: each call is out before its request leaves.

// candidateEnv has the candidate's orders, as JSON; it makes the test binary one.
const candidateEnv = "FENCEPOST_SQL_CANDIDATE"

// Of all candidates.
const (
	killResource = "jobs"
	killTTL      = 400 * time.Millisecond
)

type orders struct {
	Driver, DSN string
	Node        string
	Nonce       uint64
	First       int    // the number that it looks at first; lower ones are taken
	Flaw        string // see flawed
}

func TestMain(m *testing.M) {
	text := os.Getenv(candidateEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	go func() { // the test has ended
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, runCandidate(text))
	os.Exit(1)
}

type candidate struct {
	db      *sql.DB
	store   lease.Store
	storage *record.Storage
	rec     *linearizability.Recorder
	holder  lease.Holder
	next    int // the lowest number that may be free
}

func dialectOf(driver string) leasesql.Dialect {
	if driver == "pgx" {
		return leasesql.PostgreSQL()
	}
	return leasesql.SQLite()
}

// runCandidate returns where something is wrong with the candidate itself.
func runCandidate(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	db, err := sql.Open(o.Driver, o.DSN)
	if err != nil {
		return err
	}
	right, err := leasesql.New(db, dialectOf(o.Driver), leasesql.Options{})
	if err != nil {
		return err
	}
	clk := clock.Boot()
	rec, err := linearizability.NewRecorder(os.Stdout, killMeta(), clk.Now)
	if err != nil {
		return err
	}
	store, kv := flawed(o.Flaw, right)
	c := &candidate{db: db, rec: rec, holder: lease.Holder{Node: o.Node, Seq: 1, Nonce: o.Nonce}, next: o.First}
	c.store = record.Store(outStore{store, rec}, rec)
	c.storage = record.NewStorage(outKV{kv, rec}, "disk", rec)
	for {
		if err := c.campaign(context.Background()); err != nil {
			return err
		}
	}
}

// killMeta is what the stores of these tests promise: the server's clock is
// that of the time of day, and a lease may stay with whoever is dead.
func killMeta() linearizability.Meta {
	m := linearizability.DefaultMeta()
	m.Drift, m.Late, m.Barrier = 1_000_000, linearizability.Unbounded, true
	return m
}

// campaign asks once for the lease, and leads if it is granted.
func (c *candidate) campaign(ctx context.Context) error {
	g, err := c.store.Acquire(ctx, killResource, c.holder, killTTL)
	if err := c.rec.Flush(); err != nil {
		return err
	}
	var held *lease.HeldError
	switch {
	case errors.As(err, &held):
		time.Sleep(min(max(held.Remaining, time.Millisecond), 50*time.Millisecond))
		return nil
	case err != nil:
		c.reach(ctx)
		return nil
	}
	err = c.lead(ctx, g.Token)
	c.holder = c.holder.Next()
	return err
}

// lead writes until a request is refused.
func (c *candidate) lead(ctx context.Context, token lease.Token) error {
	storage := c.storage.As(c.holder)
	for fenced, i := false, 0; ; i++ {
		err := c.step(ctx, storage, token, &fenced, i)
		if err := c.rec.Flush(); err != nil {
			return err
		}
		switch {
		case errors.Is(err, fence.ErrStale), errors.Is(err, lease.ErrNotHeld):
			return nil
		case err != nil: // the outcome is unknown
			c.reach(ctx)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// step is the barrier, if there was none, and a write to the first number that
// is free. One whose outcome is unknown is looked for before another is made.
func (c *candidate) step(ctx context.Context, storage *record.Storage, token lease.Token, fenced *bool, i int) error {
	if !*fenced {
		if err := storage.Fence(ctx, token); err != nil {
			return err
		}
		*fenced = true
	}
	if i%4 == 3 {
		if _, err := c.store.Renew(ctx, killResource, c.holder, token, killTTL); err != nil {
			return err
		}
	}
	for {
		value, ok, err := storage.Read(ctx, strconv.Itoa(c.next))
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if value == "" {
			return fmt.Errorf("number %d has no value", c.next)
		}
		c.next++
	}
	return storage.Write(ctx, token, strconv.Itoa(c.next), fmt.Sprintf("%d by %s", token, c.holder))
}

// reach waits for the server, so that calls of unknown outcome stay few.
func (c *candidate) reach(ctx context.Context) {
	for c.db.PingContext(ctx) != nil {
		time.Sleep(5 * time.Millisecond)
	}
}

// outStore has what is on record written out before a request leaves.
type outStore struct {
	lease.Store
	rec *linearizability.Recorder
}

func (s outStore) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if err := s.rec.Flush(); err != nil {
		return lease.Grant{}, err
	}
	return s.Store.Acquire(ctx, resource, holder, ttl)
}

func (s outStore) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	if err := s.rec.Flush(); err != nil {
		return lease.Grant{}, err
	}
	return s.Store.Renew(ctx, resource, holder, token, ttl)
}

// outKV is the same for a storage.
type outKV struct {
	fence.KV
	rec *linearizability.Recorder
}

func (kv outKV) Fence(ctx context.Context, token lease.Token) error {
	if err := kv.rec.Flush(); err != nil {
		return err
	}
	return kv.KV.Fence(ctx, token)
}

func (kv outKV) Write(ctx context.Context, token lease.Token, key, value string) error {
	if err := kv.rec.Flush(); err != nil {
		return err
	}
	return kv.KV.Write(ctx, token, key, value)
}

// What a candidate may do wrong.
const (
	counterInMemory = "counter in memory"
	writesBehind    = "writes behind"
)

func flawed(flaw string, right *leasesql.Store) (lease.Store, fence.KV) {
	kv := right.KV(killResource)
	switch flaw {
	case counterInMemory:
		return &counting{Store: right, tokens: make(map[lease.Token]lease.Token)}, kv
	case writesBehind:
		return right, &behind{KV: kv, waiting: make(map[string]string)}
	}
	return right, kv
}

// counting hands out tokens that it counts itself, in memory.
type counting struct {
	*leasesql.Store
	tokens map[lease.Token]lease.Token // the table's, by its own
}

func (s *counting) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if err == nil {
		own := lease.Token(len(s.tokens) + 1)
		s.tokens[own], g.Token = g.Token, own
	}
	return g, err
}

func (s *counting) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Renew(ctx, resource, holder, s.tokens[token], ttl)
	g.Token = token
	return g, err
}

// behind acknowledges writes, and lands ten at a time.
type behind struct {
	fence.KV
	mu      sync.Mutex
	waiting map[string]string
}

func (kv *behind) Write(ctx context.Context, token lease.Token, key, value string) error {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	kv.waiting[key] = value
	if len(kv.waiting) < 10 {
		return nil
	}
	for key, value := range kv.waiting {
		if err := kv.KV.Write(ctx, token, key, value); err != nil {
			return err
		}
	}
	clear(kv.waiting)
	return nil
}

func (kv *behind) Read(ctx context.Context, key string) (string, bool, error) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	if value, ok := kv.waiting[key]; ok {
		return value, true, nil
	}
	return kv.KV.Read(ctx, key)
}
