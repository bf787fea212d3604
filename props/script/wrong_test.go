package script

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// wrong is a planted bug: a store, and the rules of which it breaks one first.
type wrong struct {
	rig
	o     kit.Options
	rules []model.Rule
	steps int // of the shortest script that shows it, found by thinking
}

func wrongs() []wrong {
	const s = time.Second
	type rec = lease.Record
	type req = lease.Request
	type rep = lease.Reply
	granted := func(r *rep) bool { return r.Code == lease.CodeGranted }
	return []wrong{
		// acquire a, 10s pass or a releases, acquire a
		{rig{name: "the same holder's token comes back", after: func(_ time.Duration, was rec, r *rec, q req, p *rep) {
			if granted(p) && r.Token != was.Token && was.Holder == q.Holder && was.Token > 0 {
				r.Token, p.Token = was.Token, was.Token
			}
		}}, kit.Options{}, []model.Rule{model.RuleTokenNext, model.RuleNotEarly, model.RuleLapseFinal, model.RuleOnTime}, 3},
		// acquire a, renew b of a
		{rig{name: "renew does not compare the holder", before: func(_ time.Duration, r *rec, q *req) {
			if q.Op == lease.OpRenew && q.Token == r.Token && r.Status == lease.Running {
				q.Holder = r.Holder
			}
		}}, kit.Options{}, []model.Rule{model.RuleRenewHolder}, 2},
		{rig{name: "renew does not compare the token", before: func(_ time.Duration, r *rec, q *req) {
			if q.Op == lease.OpRenew && q.Holder == r.Holder && q.Token > 0 {
				q.Token = r.Token
			}
		}}, kit.Options{}, []model.Rule{model.RuleRenewToken, model.RuleRenewKeepsToken}, 2},
		{rig{name: "release does not compare the holder", before: func(_ time.Duration, r *rec, q *req) {
			if q.Op == lease.OpRelease && q.Token == r.Token && r.Status == lease.Running {
				q.Holder = r.Holder
			}
		}}, kit.Options{}, []model.Rule{model.RuleReleaseHolder}, 2},
		// acquire a 1.5s, 1s pass, acquire b
		{rig{name: "whole seconds only", before: func(_ time.Duration, _ *rec, q *req) {
			if q.TTL > s {
				q.TTL = q.TTL / s * s
			}
		}, after: func(_ time.Duration, _ rec, _ *rec, q req, p *rep) {
			if granted(p) {
				p.TTL = q.TTL
			}
		}}, kit.Options{}, []model.Rule{model.RuleNotEarly, model.RuleRemaining}, 3},
		// acquire a, 10s pass, acquire b
		{rig{name: "held at the very end", after: func(now time.Duration, was rec, r *rec, q req, p *rep) {
			if was.Status == lease.Running && now == was.Expires && q.Op == lease.OpAcquire && granted(p) {
				*r = was
				*p = q.To(lease.CodeHeld)
				p.Token, p.Current = was.Token, was.Holder
			}
		}}, kit.Options{}, []model.Rule{model.RuleOnTime}, 3},
		// acquire a 10s, renew a 1s, 1s pass, acquire b
		{rig{name: "a shorter renewal shortens", after: func(now time.Duration, _ rec, r *rec, q req, p *rep) {
			if granted(p) && q.Op == lease.OpRenew {
				r.Expires = now + q.TTL
			}
		}}, kit.Options{}, []model.Rule{model.RuleNeverShortens}, 4},
		// acquire a, release a, restart, acquire b
		{rig{name: "the counter is lost at a restart", load: func(d *lease.Durable) {
			if d.Status != lease.Running {
				*d = lease.Durable{}
			}
		}}, kit.Options{}, []model.Rule{model.RuleRestartCounter}, 4},
		// acquire a, restart, acquire b
		{rig{name: "the tenure is lost at a restart", load: func(d *lease.Durable) { d.Status = lease.Free }},
			kit.Options{}, []model.Rule{model.RuleRestartTenure}, 3},
		// acquire a, delete, acquire a
		{rig{name: "deletion takes the counter along", remove: func(r *rec) { *r = rec{} }},
			kit.Options{}, []model.Rule{model.RuleDeleteCounter}, 3},
		// acquire a, acquire a
		{rig{name: "a retry gets a new token", after: func(_ time.Duration, was rec, r *rec, q req, p *rep) {
			if granted(p) && q.Op == lease.OpAcquire && r.Token == was.Token {
				r.Token++
				p.Token++
			}
		}}, kit.Options{}, []model.Rule{model.RuleAcquireAgain}, 2},
		// acquire a, 10s pass, get
		{rig{name: "get shows a lapsed tenure", after: func(_ time.Duration, was rec, r *rec, q req, p *rep) {
			if q.Op == lease.OpGet && p.Code == lease.CodeFree && was.Status == lease.Running {
				p.Current = was.Holder
			}
		}}, kit.Options{}, []model.Rule{model.RuleGet, model.RuleOnTime}, 3},
		// acquire a, 10s pass, renew a
		{rig{name: "a lapsed tenure renews", before: func(now time.Duration, r *rec, q *req) {
			if q.Op == lease.OpRenew && q.Holder == r.Holder && q.Token == r.Token && r.Status == lease.Running && q.TTL > 0 {
				r.Expires = max(r.Expires, now+1)
			}
		}}, kit.Options{}, []model.Rule{model.RuleRenewHeld}, 3},
		// acquire a, renew a 10s, 5s pass, renew a 10s, 5s pass, acquire b; by
		// the idempotent acquire as well: acquire a 1s, acquire a 10s, 1s pass, acquire b
		{rig{name: "a renewal prolongs nothing", after: func(_ time.Duration, was rec, r *rec, q req, p *rep) {
			if granted(p) && q.Op == lease.OpRenew {
				r.Expires = was.Expires
			}
		}}, kit.Options{}, []model.Rule{model.RuleRenewProlongs}, 4},
		// acquire a, 10s pass, acquire b
		{rig{name: "no lock delay"}, kit.Options{LockDelay: 5 * s}, []model.Rule{model.RuleLockDelay}, 3},
		// acquire b, release a: any refusal is a bare error
		{rig{name: "refusals are strings", refusal: func(_ lease.Reply, err error) error {
			if err != nil {
				return errors.New("no:\n" + err.Error())
			}
			return nil
		}}, kit.Options{}, []model.Rule{model.RuleAnswers}, 2},
		{rig{name: "a panic", after: func(_ time.Duration, was rec, _ *rec, q req, p *rep) {
			if q.Op == lease.OpRelease && was.Status == lease.Lapsed {
				panic("index out of range")
			}
		}}, kit.Options{}, []model.Rule{model.RuleAnswers}, 4},
		{rig{name: "grants to nobody", after: func(_ time.Duration, _ rec, _ *rec, _ req, p *rep) {
			if granted(p) {
				p.Holder = lease.Holder{}
			}
		}}, kit.Options{}, []model.Rule{model.RuleGrantHolder}, 1},
	}
}

func TestMinimizedScriptsOfWrongStoresAreShort(t *testing.T) {
	for _, w := range wrongs() {
		t.Run(w.name, func(t *testing.T) {
			for seed := range uint64(5) {
				c, failed := batch(w.open, variant{o: w.o}, seed, 20_000)
				if failed == nil {
					t.Fatalf("seed %d: not caught by %v", seed, &c)
				}
				var steps []Step
				for _, l := range failed.Lines {
					steps = append(steps, l.Step)
				}
				runs := 0
				small := Minimize(func(e kit.Env) lease.Store { runs++; return w.open(e) }, w.o, steps, failed.Breach.Rule)
				r := Run(w.open, w.o, small)
				if r.Breach == nil {
					t.Fatalf("seed %d: what is left does not fail: %v", seed, small)
				}
				rule := r.Breach.Rule
				story := strings.Join(Story(r), "\n")
				if !slices.Contains(w.rules, rule) {
					t.Errorf("seed %d: it breaks %v, not one of %v:\n%s", seed, rule, w.rules, story)
				}
				if len(small) > w.steps {
					t.Errorf("seed %d: %d steps, not %d:\n%s", seed, len(small), w.steps, story)
				}
				if seed == 0 {
					t.Logf("%v, %d runs from %d steps: %v\n%s", rule, runs, len(steps), small, story)
				}
			}
		})
	}
}
