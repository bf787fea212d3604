package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

func TestEachAnswerIsTakenDownInWords(t *testing.T) {
	r := Run(memoryWith(5*time.Second), kit.Options{LockDelay: 5 * time.Second}, Parse(`
		acquire a 10s
		acquire b 10s
		get
		renew a 20s
		renew b of a 20s
		renew c 20s        # c was granted nothing
		advance 20s
		renew a 10s
		acquire b 10s
		get
		advance 5s
		acquire b 1s
		release a
		release b
		get
		acquire a.2 10s on q
		acquire nobody 10s
		restart
		get on q
		delete on q
		get on q`))
	if r.Breach != nil {
		t.Fatalf("%v\n%s", r.Breach, strings.Join(Story(r), "\n"))
	}
	var got []string
	for _, l := range r.Lines {
		got = append(got, fmt.Sprintf("%v %v: %s", l.At, l.Step, l.Answer))
		if l.NoOp != (l.Step.String() == "renew c 20s") {
			t.Errorf("%v: no-op %v", l.Step, l.NoOp)
		}
	}
	want := []string{
		"0s acquire a 10s: granted: token 1 for 10s",
		"0s acquire b 10s: refused: a holds it under token 1 for another 10s",
		"0s get: a holds it under token 1 for another 10s",
		"0s renew a 20s: granted: token 1 for 20s",
		"0s renew b of a 20s: refused: lost, a holds it under token 1",
		"0s renew c 20s: ",
		"0s advance 20s: ",
		"20s renew a 10s: refused: lapsed",
		"20s acquire b 10s: refused: lock delay for another 5s",
		"20s get: nobody holds it, lock delay for another 5s",
		"20s advance 5s: ",
		"25s acquire b 1s: granted: token 2 for 1s",
		"25s release a: refused: lost, b holds it under token 2",
		"25s release b: released",
		"25s get: nobody holds it",
		"25s acquire a.2 10s on q: granted: token 1 for 10s",
		"25s acquire nobody 10s: refused: invalid request",
		"25s restart: ",
		"25s get on q: a.2 holds it under token 1 for another 10s",
		"25s delete on q: ",
		"25s get on q: nobody holds it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTokensAreThoseOfTheGrantsThatAStepNames(t *testing.T) {
	r := Run(memory, kit.Options{}, Parse(`
		renew a 10s
		acquire a 10s
		release a
		acquire b 10s
		release b
		acquire a.2 10s
		release a
		release b of a.2
		release c of last-1
		release a of last+1
		release a of a-2
		release b of last on q`))
	var tokens []uint64
	var noOps []int
	for i, l := range r.Lines {
		tokens = append(tokens, l.Token)
		if l.NoOp {
			noOps = append(noOps, i)
		}
	}
	if want := []uint64{0, 0, 1, 0, 2, 0, 1, 3, 2, 4, 0, 0}; !slices.Equal(tokens, want) {
		t.Errorf("the tokens are %v, want %v", tokens, want)
	}
	if want := []int{0, 10, 11}; !slices.Equal(noOps, want) {
		t.Errorf("without effect are %v, want %v", noOps, want)
	}
}

func TestWhatAStoreCannotDoHasNoEffect(t *testing.T) {
	o := kit.Options{NoGet: true, Volatile: true}
	for _, l := range Run(without(memory), o, Parse("get\nrestart\ndelete")).Lines {
		if !l.NoOp {
			t.Errorf("%v: %+v", l.Step, l)
		}
	}
}

func TestARunEndsAtTheFirstBreach(t *testing.T) {
	r := Run(noOwner().open, kit.Options{}, Parse("acquire a 10s\nrenew b of a 10s\nget"))
	if r.Breach == nil || r.Breach.Rule != model.RuleRenewHolder || len(r.Lines) != 2 {
		t.Errorf("%v, %d lines", r.Breach, len(r.Lines))
	}
}

// odd answers one kind of request by itself.
type odd struct {
	lease.Store
	acquire func(lease.Grant, error) (lease.Grant, error)
	get     func() (lease.Observation, error)
	remove  func() error
	settle  func()
}

func (s odd) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return s.acquire(s.Store.Acquire(ctx, resource, holder, ttl))
}
func (s odd) Get(context.Context, string) (lease.Observation, error) { return s.get() }
func (s odd) Delete(context.Context, string) error                   { return s.remove() }
func (s odd) Settle()                                                { s.settle() }

// A store may say that there was nothing to delete: then nothing was deleted.
func TestADeletionOfWhatNobodyHoldsMayFail(t *testing.T) {
	open := func(e kit.Env) lease.Store { return refusesDeletions{memory(e)} }
	for script, steps := range map[string]int{
		"delete\nacquire a 10s":                                      2,
		"acquire a 10s\nrelease a\ndelete\nacquire b 10s":            4,
		"acquire a 10s\nadvance 10s\ndelete\nrelease a":              4,
		"acquire a 10s\nadvance 10s\nget\ndelete\nacquire b 10s":     5,
		"acquire a 10s\nadvance 9.999999999s\ndelete\nacquire b 10s": 3, // which is wrong
	} {
		if r := Run(open, kit.Options{}, Parse(script)); len(r.Lines) != steps || (r.Breach != nil) != (steps == 3) {
			t.Errorf("%q: %+v", script, r)
		}
	}
}

type refusesDeletions struct{ lease.Store }

func (refusesDeletions) Delete(context.Context, string) error { return errors.New("no such lease") }

func TestWhatIsNoAnswerBreaksARule(t *testing.T) {
	right := odd{
		acquire: func(g lease.Grant, err error) (lease.Grant, error) { return g, err },
		get:     func() (lease.Observation, error) { return lease.Observation{}, nil },
		remove:  func() error { return nil },
		settle:  func() {},
	}
	for _, c := range []struct {
		script, answer string
		rule           model.Rule
		change         func(*odd)
	}{
		{"acquire a 10s", `error: the disk is full, says line 2`, model.RuleAnswers, func(s *odd) {
			s.acquire = func(lease.Grant, error) (lease.Grant, error) {
				return lease.Grant{}, errors.New("the disk is full,\n\tsays line 2")
			}
		}},
		{"acquire a 10s", `granted: "shard-9" to "a#1.a11ce0a4b7c3d91e", token 1`, model.RuleGrantHolder, func(s *odd) {
			s.acquire = func(g lease.Grant, err error) (lease.Grant, error) { g.Resource = "shard-9"; return g, err }
		}},
		{"acquire a 10s", `granted: "shard-1" to "a#1.a11ce", token 1`, model.RuleGrantHolder, func(s *odd) {
			s.acquire = func(g lease.Grant, err error) (lease.Grant, error) { g.Holder.Nonce >>= 44; return g, err }
		}},
		{"get", `panic: no database, at run_test.go:NN`, model.RuleAnswers, func(s *odd) {
			s.get = func() (lease.Observation, error) { panic("no database") }
		}},
		{"get", `panic: runtime error: index out of range [3] with length 0, at run_test.go:NN`, model.RuleAnswers, func(s *odd) {
			s.get = func() (lease.Observation, error) { var none []lease.Observation; return none[len("abc")], nil }
		}},
		{"get", `the unknown "z#1.1" holds it under token 7`, model.RuleGet, func(s *odd) {
			s.get = func() (lease.Observation, error) {
				return lease.Observation{Holder: lease.Holder{Node: "z", Seq: 1, Nonce: 1}, Token: 7}, nil
			}
		}},
		{"acquire a 10s\ndelete", `error: not today`, model.RuleAnswers, func(s *odd) { s.remove = func() error { return errors.New("not today") } }},
		{"advance 1s", `panic: tick, at run_test.go:NN`, model.RuleAnswers, func(s *odd) { s.settle = func() { panic("tick") } }},
		{"restart", `panic: no way back, at run_test.go:NN`, model.RuleAnswers, nil},
	} {
		boots := 0
		open := func(e kit.Env) lease.Store {
			if boots++; boots == 2 {
				panic("no way back")
			}
			s := right
			s.Store = memory(e)
			if c.change != nil {
				c.change(&s)
			}
			return s
		}
		r := Run(open, kit.Options{}, Parse(c.script))
		if r.Breach == nil {
			t.Errorf("%s: nothing is wrong with %q", c.script, r.Lines[len(r.Lines)-1].Answer)
			continue
		}
		answer := r.Lines[len(r.Lines)-1].Answer
		if i := strings.Index(answer, "_test.go:"); i >= 0 {
			answer = answer[:i] + "_test.go:NN"
		}
		if r.Breach.Rule != c.rule || answer != c.answer {
			t.Errorf("%s: %q breaks %v, want %q and %v", c.script, answer, r.Breach.Rule, c.answer, c.rule)
		}
	}
}

func TestAStoreThatCannotBeSetUpIsNoBreach(t *testing.T) {
	for _, boot := range []int{1, 2} {
		boots, cannot := 0, errors.New("no such host")
		err := kit.Attempt(func() {
			Run(func(e kit.Env) lease.Store {
				if boots++; boots == boot {
					e.Fatal(cannot)
				}
				return memory(e)
			}, kit.Options{}, Parse("restart"))
		})
		if !errors.Is(err, cannot) {
			t.Errorf("boot %d: %v", boot, err)
		}
	}
}

// once is a store whose process dies once.
type once struct {
	lease.Store
	dead chan struct{}
}

func (s once) Close() { close(s.dead) }

func TestAStoreThatCannotComeBackIsClosedOnce(t *testing.T) {
	boots := 0
	r := Run(func(e kit.Env) lease.Store {
		if boots++; boots == 2 {
			panic("no way back")
		}
		return once{memory(e), make(chan struct{})}
	}, kit.Options{}, Parse("restart"))
	if r.Breach == nil || r.Breach.Rule != model.RuleAnswers {
		t.Errorf("%+v", r)
	}
}

func TestErrorsThatWrapARefusalAreThatRefusal(t *testing.T) {
	wrap := rig{refusal: func(_ lease.Reply, err error) error {
		if err != nil {
			return fmt.Errorf("table leases: %w", err)
		}
		return nil
	}}
	c, failed := batch(wrap.open, variant{}, 1, 5_000)
	if failed != nil || c.Held == 0 || c.Lapsed == 0 || c.Lost == 0 || c.Invalid == 0 {
		t.Errorf("%v, %+v", failed, c)
	}
}

// The strangest scripts convict no right store: TTLs and passages of time near
// the largest there are, and holders and tokens of every kind.
func FuzzRun(f *testing.F) {
	f.Add("acquire a 10s\nadvance 9.999999999s\nrenew a 2562047h47m16.854775807s\nadvance 2562047h47m16.854775807s\nrestart\nget\nacquire b 1ns\nrelease nobody of last-1")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := ParseText(text)
		if err != nil || len(steps) > 100 {
			return
		}
		for _, v := range variants() {
			// Others reckon with instants that overflow.
			if v.name != "memory" && v.name != "lock delay" && v.name != "records" {
				continue
			}
			if r := Run(v.open, v.o, steps); r.Breach != nil {
				t.Fatalf("%s: %v\n%s", v.name, r.Breach.Rule, strings.Join(Story(r), "\n"))
			}
		}
	})
}
