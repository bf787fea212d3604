package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

const (
	ttl = 3 * time.Second
	// lanes are the resources of each library whose leaders are killed at the same
	// time.
	lanes = 8
)

// bout is contests on one server.
type bout struct {
	server  server
	mu      sync.Mutex
	results map[string]*result
}

func newBout(tb testing.TB) *bout {
	b := &bout{server: startServer(tb), results: map[string]*result{}}
	for name := range libraries {
		b.results[name] = &result{}
	}
	return b
}

// open seats two candidates for resource.
func (b *bout) open(library, resource string) (*contest, error) {
	c := newContest(job{Library: library, Resource: resource, Server: b.server, TTL: ttl})
	return c, errors.Join(c.seat(0), c.seat(1))
}

func (b *bout) close(library string, c *contest) {
	leads := c.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[library].believers += overlaps(leads)
}

// resignations lets one library after the other have its turn, while next does.
func (b *bout) resignations(ctx context.Context, rng *rand.Rand, next func() bool) error {
	contests := map[string]*contest{}
	for _, library := range measured {
		c, err := b.open(library, "resigned")
		defer b.close(library, c)
		if err != nil {
			return fmt.Errorf("%s: %w", library, err)
		}
		contests[library] = c
	}
	for next() {
		for _, library := range measured {
			// Long enough for the last leader to wait again, and any moment of the
			// longest poll.
			took, err := contests[library].resignation(ctx, 100*time.Millisecond+upTo(rng, 400*time.Millisecond))
			if err != nil {
				return fmt.Errorf("%s, after a resignation: %w", library, err)
			}
			b.results[library].resigned = append(b.results[library].resigned, took)
		}
	}
	return nil
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// kills kills at least rounds leaders of each library.
func (b *bout) kills(ctx context.Context, rng *rand.Rand, rounds, lanes int) error {
	var all sync.WaitGroup
	failed := make(chan error, lanes*len(measured))
	for lane := range lanes {
		for _, library := range measured {
			rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
			all.Go(func() {
				c, err := b.open(library, fmt.Sprint("killed-", lane))
				defer b.close(library, c)
				for i := 0; i < (rounds+lanes-1)/lanes && err == nil; i++ {
					// Any moment of a period of renewals, which is at most a third of
					// the TTL, once there has been one.
					var took time.Duration
					if took, err = c.kill(ctx, ttl/3+ttl/15+upTo(rng, ttl/3)); err == nil {
						b.mu.Lock()
						b.results[library].killed = append(b.results[library].killed, took)
						b.mu.Unlock()
					}
				}
				if err != nil {
					failed <- fmt.Errorf("%s, after a kill: %w", library, err)
				}
			})
		}
	}
	all.Wait()
	close(failed)
	return <-failed
}

// How long there is no leader, after as many resignations and kills as -benchtime
// says: 200x takes about six minutes. See the package's documentation.
func BenchmarkFailover(b *testing.B) {
	bout, rng := newBout(b), rand.New(rand.NewPCG(1, 1))
	before := loadNow()
	if err := bout.resignations(b.Context(), rng, b.Loop); err != nil {
		b.Fatal(err)
	}
	between := loadNow()
	if err := bout.kills(b.Context(), rng, b.N, lanes); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("\nTTL %v, machine busy: resigning %.0f%%, killing %.0f%%, load average %s\n%s",
		ttl, between.since(before), loadNow().since(between), average(), table(bout.results))
	for _, library := range measured {
		if n := bout.results[library].believers; n > 0 && library == ours {
			b.Errorf("%d times two believed that they led", n)
		}
	}
}

func TestEveryLibraryFailsOver(t *testing.T) {
	bout, rng, rounds := newBout(t), rand.New(rand.NewPCG(1, 1)), 0
	if err := bout.resignations(t.Context(), rng, func() bool { rounds++; return rounds <= 2 }); err != nil {
		t.Fatal(err)
	}
	if err := bout.kills(t.Context(), rng, 2, 2); err != nil {
		t.Fatal(err)
	}
	for _, library := range measured {
		r := bout.results[library]
		if len(r.resigned) != 2 || len(r.killed) != 2 || r.believers > 0 {
			t.Errorf("%s: %+v", library, *r)
		}
		for _, took := range r.killed {
			// Nobody may take over before what the dead leader has left of its TTL, two
			// thirds or more, is over.
			if took < ttl/2 {
				t.Errorf("%s: another led %v after the kill", library, took)
			}
		}
	}
	t.Log("\n" + table(bout.results))
}

func TestTwoBelieversAreSeen(t *testing.T) {
	c := newContest(job{Library: reckless, Resource: "r", TTL: ttl})
	if err := errors.Join(c.seat(0), c.seat(1)); err != nil {
		t.Fatal(err)
	}
	_, err := c.listen(t.Context(), patience, func(heard) bool { return len(c.leading) == 2 })
	if n := overlaps(c.close()); err != nil || n != 1 {
		t.Errorf("%d times two believed, %v; want once", n, err)
	}
}
