package electortest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Each wrong client, and all the checks that must convict it; the first is the
// one that names its mistake. Random plans may convict it too.
var wrongClients = []struct {
	name     string
	start    func(Env) Candidate
	o        Options
	convicts []string
}{
	{"counts from the reply", fromTheReply, Options{}, []string{"belief/counts-from-the-send"}},
	{"trusts the context of a hung call", trustsItsContext, Options{}, []string{"belief/ends-while-a-call-hangs", randomName}},
	{"gives a refusal three strikes", threeStrikes, Options{}, []string{"belief/ends-at-a-refusal"}},
	{"defers its release in the wrong order", defersInTheWrongOrder, Options{}, []string{"release/after-the-work-has-ended", randomName}},
	{"leads on after a refusal", client(slips{leadOnAfterRefusal: true}), Options{}, []string{"belief/ends-at-a-refusal"}},
	{"acquires to renew, and leads on after a refusal", client(slips{anyToken: true, leadOnAfterRefusal: true}), Options{}, []string{"belief/ends-at-a-refusal"}},
	{"releases before its work has ended", client(slips{releaseEarly: true}), Options{}, []string{"release/after-the-work-has-ended"}},
	{"never releases", client(slips{neverRelease: true}), Options{}, []string{"release/at-shutdown"}},
	{"retries a lost term as the same holder", client(slips{sameIdentity: true}), Options{}, []string{"identity/new-incarnation-after-each-term"}},
	{"has no nonce", client(slips{noNonce: true}), Options{}, []string{"identity/two-processes-differ"}},
	{"is revived by a late answer", client(slips{revive: true}), Options{}, []string{"belief/not-revived-by-a-late-answer"}},
	{"takes a grant of another token for a renewal", client(slips{anyToken: true}), Options{}, []string{"belief/one-term-one-token", randomName}},
	{"leads in the lock delay", client(slips{leadOnDelay: true}), Options{}, []string{"belief/only-what-was-granted"}},
	{"never renews", client(slips{neverRenew: true}), Options{}, []string{"renew/in-time"}},
	{"renews at the TTL", client(slips{renewAtTTL: true}), Options{}, []string{"renew/in-time"}},
	{"renews once in a window", client(slips{renewLate: true}), Options{}, []string{"renew/survives-a-lost-renewal"}},
	{"takes no account of drift", client(slips{ignoreDrift: true}), Options{}, []string{"belief/ends-with-a-fast-store-clock"}},
	{"takes no account of the TTL granted", client(slips{ignoreGrantedTTL: true}), Options{}, []string{"belief/grant-with-a-shorter-ttl"}},
	{"leads on a late grant", client(slips{leadLate: true}), Options{}, []string{"belief/late-grant-is-no-lead"}},
	{"re-reads the token", client(slips{rereadToken: true}), Options{}, []string{"renew/carries-the-granted-token", "release/under-its-own-token", randomName}},
	{"gives up at an error", client(slips{giveUp: true}), Options{}, []string{"acquire/keeps-campaigning"}},
	{"returns after a term", client(slips{exit: true}), Options{}, []string{"acquire/keeps-campaigning"}},
	{"asks without pause", client(slips{noPause: true}), Options{}, []string{"acquire/waits-between-attempts"}},
	{"backs off for long", client(slips{longPause: true}), Options{}, []string{"acquire/takes-over-after-lapse", "acquire/takes-over-after-release", "acquire/unknown-outcome-then-granted"}},
	{"leaves a goroutine behind", client(slips{leak: true}), Options{}, []string{"release/at-shutdown"}},
	{"leads before the fence", client(slips{leadUnfenced: true}), Options{Fences: true}, []string{"fence/before-leading"}},
	{"holds its mutex during a call", holdsItsMutex, Options{patience: 5}, []string{"acquire/leads-when-free"}},
}

func TestEachWrongClientIsConvictedByTheCheckThatNamesItsMistake(t *testing.T) {
	for _, w := range wrongClients {
		t.Run(w.name, func(t *testing.T) {
			var convicted []string
			w.o.Plans = 25
			for _, c := range Checks(w.start, w.o, kit.Effort{Seed: 1}) {
				if c.Name == randomName && !slices.Contains(w.convicts, randomName) && os.Getenv("FENCEPOST_LONG") == "" {
					continue // minimising takes its time
				}
				out := c.Run(t)
				if f := out.Failure; f != nil {
					convicted = append(convicted, c.Name)
					if slices.Contains(w.convicts, c.Name) || testing.Verbose() {
						t.Log(c.Name, report(f))
					}
					if len(f.Story) == 0 || len(f.Story) > mostLines || !strings.HasSuffix(f.Story[len(f.Story)-1], "◄") || f.Says == "" || f.Read == "" {
						t.Errorf("%s: a story of %d lines, says %q, read %q", c.Name, len(f.Story), f.Says, f.Read)
					}
				}
			}
			t.Log("convicted by", convicted)
			for _, name := range w.convicts {
				if !slices.Contains(convicted, name) {
					t.Errorf("not convicted by %s, but by %q", name, convicted)
				}
			}
		})
	}
}

// looks asks who holds the lease before it acquires it, and after.
type looks struct{ lease.Store }

func (s looks) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	o, err := s.Get(ctx, resource)
	if err != nil {
		return lease.Grant{}, err
	}
	if !o.Holder.IsZero() && o.Holder != holder {
		return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: o.Holder, Token: o.Token, Remaining: o.Remaining}
	}
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if err == nil {
		_, err = s.Get(context.WithoutCancel(ctx), resource)
	}
	return g, err
}

func TestWhateverElseAClientAsksOrWaitsForItIsConvicted(t *testing.T) {
	for name, as := range map[string]func(func(Env) Candidate) func(Env) Candidate{
		"looks": func(start func(Env) Candidate) func(Env) Candidate {
			return func(env Env) Candidate {
				env.Store = looks{env.Store}
				return start(env)
			}
		},
		"begins late": func(start func(Env) Candidate) func(Env) Candidate {
			return func(env Env) Candidate {
				c := start(env)
				run := c.Run
				c.Run = func(ctx context.Context) error {
					pause(ctx, env.Config.Retry())
					return run(ctx)
				}
				return c
			}
		},
		"fences": func(start func(Env) Candidate) func(Env) Candidate { return start },
	} {
		t.Run(name, func(t *testing.T) {
			passes(t, as(client(slips{})), Options{Fences: name == "fences", Plans: 10})
			for _, w := range wrongClients {
				w.o.Fences, w.o.Plans = w.o.Fences || name == "fences", 1
				for _, c := range Checks(as(w.start), w.o, kit.Effort{Seed: 1}) {
					if c.Name == w.convicts[0] && c.Run(t).Failure == nil {
						t.Errorf("%s: not convicted by %s", w.name, c.Name)
					}
				}
			}
		})
	}
}

func TestEachCheckConvictsSomebody(t *testing.T) {
	var convicts []string
	for _, w := range wrongClients {
		convicts = append(convicts, w.convicts...)
	}
	for _, c := range Checks(elector, Options{Fences: true}, kit.Effort{}) {
		if !slices.Contains(convicts, c.Name) {
			t.Errorf("%s convicts no wrong client", c.Name)
		}
	}
}

func TestTheClientWithoutASlipPasses(t *testing.T) { passes(t, client(slips{}), Options{}) }

func TestAClientThatExitsPassesIfItSaysSo(t *testing.T) {
	passes(t, client(slips{exit: true}), Options{Exits: true, Plans: 30})
}

func TestAClientThatNeverReleasesPassesIfItSaysSo(t *testing.T) {
	passes(t, client(slips{neverRelease: true}), Options{NoRelease: true, Plans: 30})
}

func TestAFencingClientPasses(t *testing.T) {
	passes(t, client(slips{}), Options{Fences: true, Plans: 30})
}

func TestIsLeaderAnswersByItself(t *testing.T) {
	asking := func(isLeader func(Env) bool) func(Env) Candidate {
		return func(env Env) Candidate {
			c := client(slips{})(env)
			c.IsLeader = func() bool { return isLeader(env) }
			return c
		}
	}
	for name, start := range map[string]func(Env) Candidate{
		"calls the store": asking(func(env Env) bool {
			o, err := env.Store.Get(context.Background(), env.Resource)
			return err == nil && o.Holder.Nonce == env.Nonce
		}),
		"takes 1s": asking(func(Env) bool {
			time.Sleep(time.Second)
			return false
		}),
		"does not return": func(env Env) Candidate {
			asked, leads := make(chan chan bool), false // a loop's own
			return Candidate{
				Run: func(ctx context.Context) error {
					me := lease.Holder{Node: env.Node, Seq: 1, Nonce: env.Nonce}
					for {
						select {
						case a := <-asked:
							a <- leads
						case <-time.After(env.Config.Retry()):
							_, err := env.Store.Acquire(ctx, env.Resource, me, env.Config.TTL)
							leads = err == nil
						case <-ctx.Done():
							return nil
						}
					}
				},
				IsLeader: func() bool {
					a := make(chan bool)
					asked <- a
					return <-a
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Checks(start, Options{patience: 5}, kit.Effort{Seed: 1})[0].Run(t).Failure
			if f == nil || f.Rule != rules[kindStuck].name || !strings.Contains(f.What, name) {
				t.Errorf("came to %+v", f)
			}
		})
	}
}

func TestAClientOfAnotherLeaseIsUnknown(t *testing.T) {
	start := func(env Env) Candidate {
		env.Resource = "locks/" + env.Resource
		return client(slips{})(env)
	}
	for _, c := range Checks(start, Options{Plans: 1}, kit.Effort{Seed: 1}) {
		if out := c.Run(t); out.Failure != nil || !strings.Contains(out.Unknown, "locks/orders") {
			t.Errorf("%s: came to %+v", c.Name, out)
		}
	}
}
