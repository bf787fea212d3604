package storagetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// faulty is a right storage with one fault.
type faulty struct {
	fence.KV
	write func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error
	fence func(kv fence.KV, ctx context.Context, token lease.Token) error
	read  func(kv fence.KV, ctx context.Context, key string) (string, bool, error)
}

func (f *faulty) Write(ctx context.Context, token lease.Token, key, value string) error {
	if f.write == nil {
		return f.KV.Write(ctx, token, key, value)
	}
	return f.write(f.KV, ctx, token, key, value)
}

func (f *faulty) Fence(ctx context.Context, token lease.Token) error {
	if f.fence == nil {
		return f.KV.Fence(ctx, token)
	}
	return f.fence(f.KV, ctx, token)
}

func (f *faulty) Read(ctx context.Context, key string) (string, bool, error) {
	if f.read == nil {
		return f.KV.Read(ctx, key)
	}
	return f.read(f.KV, ctx, key)
}

// with is journaled with a fault.
func with(f faulty) opener {
	return func(e kit.Env) fence.KV {
		f := f
		f.KV = journaled(e)
		return &f
	}
}

// Each check convicts a storage that has one fault, by its rule. (More of them
// are in the catalogue of package mutant.)
func TestAFaultIsConvictedByTheCheckOfItsRule(t *testing.T) {
	type write = func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error
	type read = func(kv fence.KV, ctx context.Context, key string) (string, bool, error)
	writes := func(w write) opener { return with(faulty{write: w}) }
	reads := func(r read) opener { return with(faulty{read: r}) }
	for _, c := range []struct {
		name  string
		open  opener
		o     Options
		check string
		rule  rule
	}{
		{"a fence that erases", with(faulty{fence: func(kv fence.KV, ctx context.Context, token lease.Token) error {
			if err := kv.Fence(ctx, token); err != nil {
				return err
			}
			return kv.Write(ctx, token, "x", "")
		}}), Options{}, "rules/fence-writes-nothing", fenceWritesNothing},
		{"a fence that takes any token", with(faulty{fence: func(kv fence.KV, ctx context.Context, token lease.Token) error {
			if err := kv.Fence(ctx, token); token > 0 && errors.Is(err, fence.ErrStale) {
				return nil
			}
			return kv.Fence(ctx, token)
		}}), Options{}, "rules/fence-of-a-lower-token-is-refused", fenceOfALowerTokenIsRefused},
		{"one key for all", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			if err := kv.Write(ctx, token, "x", value); err != nil {
				return err
			}
			return kv.Write(ctx, token, "y", value)
		}), Options{}, "rules/keys-are-apart", keysAreApart},
		{"empty is nothing", reads(func(kv fence.KV, ctx context.Context, key string) (string, bool, error) {
			v, _, err := kv.Read(ctx, key)
			return v, v != "", err
		}), Options{}, "rules/empty-values-are-values", emptyValuesAreValues},
		{"a refusal that names what was refused", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			err := kv.Write(ctx, token, key, value)
			if errors.Is(err, fence.ErrStale) {
				return &fence.StaleTokenError{Token: token, Highest: token}
			}
			return err
		}), Options{}, "rules/refusal-names-the-highest", refusalNamesTheHighest},
		{"data in memory", func(e kit.Env) fence.KV {
			disk := kit.Durable(e, "highest", func() *fence.Durable { return new(fence.Durable) })
			return fence.Restore(*disk, appendTo(func(en fence.Entry) error {
				en.Fence = true // all that is kept of it
				return disk.Apply(en)
			}))
		}, Options{}, "restarts/restart-keeps-what-landed", restartKeepsWhatLanded},
		{"keys fold case", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			if strings.EqualFold(key, "key") {
				key = "key"
			}
			return kv.Write(ctx, token, key, value)
		}), Options{}, "malformed/odd-keys", oddKeysAndValues},
		{"keys and reads fold case", with(faulty{
			write: func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
				return kv.Write(ctx, token, strings.ToLower(key), value)
			},
			read: func(kv fence.KV, ctx context.Context, key string) (string, bool, error) {
				return kv.Read(ctx, strings.ToLower(key))
			},
		}), Options{}, "malformed/odd-keys", keysAreApart},
		{"values are trimmed", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			return kv.Write(ctx, token, key, strings.TrimSpace(value))
		}), Options{}, "malformed/odd-values", oddKeysAndValues},
		{"an empty key is refused as stale", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			if key == "" {
				return fence.ErrStale
			}
			return kv.Write(ctx, token, key, value)
		}), Options{}, "malformed/odd-keys", oddKeysAndValues},
		{"values are cut", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			return kv.Write(ctx, token, key, value[:min(len(value), 8192)])
		}), Options{}, "malformed/odd-values", oddKeysAndValues},
		{"panics at the largest token", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			if token > lease.Token(DefaultMaxToken) {
				panic("out of range")
			}
			return kv.Write(ctx, token, key, value)
		}), Options{}, "malformed/largest-token", neverPanics},
		{"an ended context is a stale token", writes(func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			if ctx.Err() != nil {
				return fence.ErrStale
			}
			return kv.Write(ctx, token, key, value)
		}), Options{}, "malformed/ended-context", endedContext},
		{"an ended context stops it for ever", func() opener {
			return func(e kit.Env) fence.KV {
				stopped := kit.Durable(e, "stopped", func() *bool { return new(bool) })
				f := &faulty{KV: journaled(e)}
				f.write = func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
					if *stopped = *stopped || ctx.Err() != nil; *stopped {
						return errors.New("connection closed")
					}
					return kv.Write(ctx, token, key, value)
				}
				return f
			}
		}(), Options{}, "malformed/ended-context", endedContext},
		{"volatile tokens over durable data", func(e kit.Env) fence.KV {
			disk := kit.Durable(e, "values", func() map[string]string { return map[string]string{} })
			return fence.Restore(fence.Durable{Values: disk}, appendTo(func(en fence.Entry) error {
				disk[en.Key] = en.Value
				return nil
			}))
		}, Options{Volatile: true}, "restarts/data-goes-with-the-tokens", dataGoesWithTheTokens},
		{"compare-and-swap that admits what is higher", carrying(func(carried, token lease.Token) bool { return carried != 0 && token >= carried }),
			Options{Carry: carryToken}, "rules/only-the-carried-token-lands", onlyTheCarriedTokenLands},
		{"compare-and-swap that forgets releases", carrying(nil),
			Options{Carry: carryForgetful}, "rules/after-a-release-nothing-lands", afterAReleaseNothingLands},
		{"compare-and-swap that admits nothing", carrying(func(carried, token lease.Token) bool { return false }),
			Options{Carry: carryToken}, "rules/the-carried-token-lands", theCarriedTokenLands},
		{"compare-and-swap in two steps", func(e kit.Env) fence.KV {
			return kit.Durable(e, "swap", func() *swap {
				return &swap{ok: func(carried, token lease.Token) bool { return carried != 0 && token == carried }, apart: true}
			})
		}, Options{Carry: carryToken}, "concurrency/stale-writes-against-a-grant", onlyTheCarriedTokenLands},
	} {
		t.Run(c.name, func(t *testing.T) {
			var failed []string
			for _, check := range Checks(c.open, c.o, effort) {
				out := check.Run()
				if out.Unknown != "" {
					t.Errorf("%s: unknown: %s", check.Name, out.Unknown)
				}
				f := out.Failure
				if f == nil {
					continue
				}
				failed = append(failed, check.Name)
				if check.Name != c.check {
					continue
				}
				if f.Rule != c.rule.String() || len(f.Story) == 0 || len(f.Story) > storyLines || !strings.Contains(f.Story[len(f.Story)-1], "◄") {
					t.Errorf("convicted by %v\n%s", f, joined(f.Story))
				}
				t.Logf("%v\n%s", f, joined(f.Story))
				return
			}
			t.Errorf("%s did not convict it, but %v did", c.check, failed)
		})
	}
}

type appendTo func(fence.Entry) error

func (a appendTo) Append(e fence.Entry) error { return a(e) }

// swap is a compare-and-swap storage with a comparison of its own.
type swap struct {
	mu      sync.Mutex
	carried lease.Token
	ok      func(carried, token lease.Token) bool
	apart   bool // the comparison and the write are two steps
	fence.Unfenced
}

func carrying(ok func(carried, token lease.Token) bool) opener {
	if ok == nil {
		ok = func(carried, token lease.Token) bool { return carried != 0 && token == carried }
	}
	return func(e kit.Env) fence.KV {
		return kit.Durable(e, "swap", func() *swap { return &swap{ok: ok} })
	}
}

func (s *swap) Write(ctx context.Context, token lease.Token, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ok(s.carried, token) {
		return fence.ErrStale
	}
	if s.apart {
		s.mu.Unlock()
		defer s.mu.Lock()
	}
	return s.Unfenced.Write(ctx, token, key, value)
}

func (s *swap) Fence(ctx context.Context, token lease.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ok(s.carried, token) {
		return fence.ErrStale
	}
	return nil
}

func carryToken(_ context.Context, kv fence.KV, token lease.Token) error {
	s := kv.(*swap)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carried = token
	return nil
}

func carryForgetful(ctx context.Context, kv fence.KV, token lease.Token) error {
	if token == 0 {
		return nil
	}
	return carryToken(ctx, kv, token)
}

// A storage that fails while others are at work tells nothing, and is not
// convicted.
func TestUnknownOutcomesConvictNobody(t *testing.T) {
	busy := errors.New("database is locked")
	open := func(e kit.Env) fence.KV {
		t := kit.Durable(e, "table", func() *table { return &table{} })
		gate := make(chan struct{}, 1)
		try := func(ctx context.Context, f func() (bool, error)) (bool, error) {
			select {
			case gate <- struct{}{}:
				defer func() { <-gate }()
				return f()
			case <-ctx.Done():
				return false, ctx.Err()
			default:
				return false, busy
			}
		}
		return Funcs{
			Write: func(ctx context.Context, token uint64, key, value string) (bool, error) {
				return try(ctx, func() (bool, error) { _ = ctx.Err(); return t.write(ctx, token, key, value) })
			},
			Fence: func(ctx context.Context, token uint64) (bool, error) {
				return try(ctx, func() (bool, error) { return t.fence(ctx, token) })
			},
			Read: t.read,
		}.KV()
	}
	for _, c := range Checks(open, Options{}, effort) {
		if out := c.Run(); out.Failure != nil {
			t.Errorf("%s: %v\n%s", c.Name, out.Failure, joined(out.Failure.Story))
		}
	}
}

// One that could not be set up is unknown, whenever it gives up.
func TestAStorageThatGivesUpIsUnknown(t *testing.T) {
	no := errors.New("no such database")
	for name, open := range map[string]opener{
		"at once": func(e kit.Env) fence.KV { e.Fatal(no); return nil },
		"in a call": func(e kit.Env) fence.KV {
			return &faulty{KV: journaled(e), write: func(fence.KV, context.Context, lease.Token, string, string) error { e.Fatal(no); return nil }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range Checks(open, Options{}, effort) {
				if out := c.Run(); !strings.Contains(out.Unknown, "no such database") && out.Skipped == "" {
					t.Errorf("%s came to %+v", c.Name, out)
				}
			}
		})
	}
}
