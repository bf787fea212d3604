package livetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// taskOf runs one check of the server alone.
func taskOf(t *testing.T, s *server, name string) kit.Outcome {
	t.Helper()
	o := s.options().withDefaults()
	w := newWorld(s.open)
	defer w.close()
	tasks := append(append(waiting(w, o), stormChecks(w, o)...), believerChecks(w, o)...)
	for _, task := range tasks {
		if task.name == name {
			return kit.Guard(task.run)
		}
	}
	for _, c := range restartChecks(w, o) {
		if c.Name == name {
			return c.Run()
		}
	}
	t.Fatalf("there is no check %q", name)
	return kit.Outcome{}
}

// extend is a grant of rec to whoever asks, as it stands.
func extend(req lease.Request, rep *lease.Reply, rec *lease.Record) {
	*rep = lease.Reply{Code: lease.CodeGranted, Op: req.Op, Holder: req.Holder, Asked: req.Token, Token: req.Token, TTL: req.TTL}
}

// Each wrong server is convicted by the named check, under the named rule. The
// flaws are those of stores that people use.
func TestEachWrongServerIsConvictedByTheCheckOfItsRule(t *testing.T) {
	for _, c := range []struct {
		flaw, check, rule string
		of                func(*server)
	}{
		{"DEL without a look at who holds it", "rules/release-only-by-the-holder", "release-only-by-the-holder", func(s *server) {
			s.before = func(_ time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpRelease && !req.Holder.IsZero() && req.Token > 0 {
					req.Holder, req.Token = rec.Holder, rec.Token
				}
			}
		}},
		{"a release compares the holder, not the token", "rules/late-release", "release-only-under-its-token", func(s *server) {
			s.before = func(_ time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpRelease && req.Holder == rec.Holder && req.Token > 0 {
					req.Token = rec.Token
				}
			}
		}},
		{"SETNX: every token is 1", "rules/next-token", "token-next-at-new-ownership", func(s *server) {
			s.before = func(_ time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpAcquire && rec.Status != lease.Running {
					rec.Token = 0
				}
			}
		}},
		{"SETNX with a random value as the token", "rules/next-token", "token-next-at-new-ownership", func(s *server) {
			s.before = func(_ time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpAcquire && rec.Status != lease.Running {
					rec.Token = lease.Token(rand.Uint32())
				}
			}
		}},
		{"TTLs are cut to whole units", "ttl/one-and-a-half-minimums", "lapses-not-early", func(s *server) {
			s.before = func(_ time.Duration, _ *lease.Record, req *lease.Request) {
				req.TTL = req.TTL.Truncate(100 * time.Millisecond)
			}
			s.after = func(req lease.Request, rep *lease.Reply, _ *lease.Record) { rep.TTL += 50 * time.Millisecond }
		}},
		{"TTLs are cut to whole units, and the grant says so", "ttl/one-and-a-half-minimums", "grant-says-how-long", func(s *server) {
			s.before = func(_ time.Duration, _ *lease.Record, req *lease.Request) {
				req.TTL = req.TTL.Truncate(100 * time.Millisecond)
			}
		}},
		{"a renewal shortens", "rules/renew-with-a-shorter-ttl-never-shortens", "never-shortens", func(s *server) {
			s.before = func(now time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpRenew && rec.Held(now) && rec.Holder == req.Holder {
					rec.Expires = now + 1
				}
			}
		}},
		{"a renewal prolongs nothing", "rules/renew-prolongs", "renew-prolongs", func(s *server) {
			s.instead = func(s *server, resource string, req lease.Request) (lease.Reply, bool) {
				if req.Op != lease.OpRenew {
					return lease.Reply{}, false
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				was := s.records[resource]
				rep := s.locked(resource, req)
				s.records[resource] = was
				return rep, true
			}
		}},
		{"an acquire by the holder is refused", "rules/acquire-again-keeps-the-token", "acquire-again-keeps-the-token", func(s *server) {
			s.instead = func(s *server, resource string, req lease.Request) (lease.Reply, bool) {
				s.mu.Lock()
				defer s.mu.Unlock()
				rec := s.records[resource]
				held := req.Op == lease.OpAcquire && rec.Held(s.clk.Now()) && rec.Holder == req.Holder
				return lease.Reply{Code: lease.CodeHeld, Op: req.Op, Current: rec.Holder, Token: rec.Token, Remaining: 1}, held
			}
		}},
		{"an acquire by the holder gets a new token", "rules/acquire-again-keeps-the-token", "acquire-again-keeps-the-token", func(s *server) {
			s.before = func(now time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpAcquire && rec.Held(now) && rec.Holder == req.Holder {
					rec.Token++
				}
			}
		}},
		{"leases lapse early", "rules/lapse", "lapses-not-early", func(s *server) {
			s.before = func(_ time.Duration, _ *lease.Record, req *lease.Request) { req.TTL = req.TTL * 3 / 4 }
			s.after = func(req lease.Request, rep *lease.Reply, _ *lease.Record) { rep.TTL = req.TTL * 4 / 3 }
		}},
		{"leases never lapse", "rules/lapse", "lapses-on-time", func(s *server) {
			s.after = func(_ lease.Request, _ *lease.Reply, rec *lease.Record) { rec.Expires += time.Hour }
		}},
		{"any renewal is granted", "rules/renew-only-by-the-holder", "renew-only-by-the-holder", func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpRenew && rep.Code == lease.CodeLost {
					extend(req, rep, rec)
				}
			}
		}},
		{"a renewal after a takeover is granted", "rules/takeover", "renew-only-by-the-holder", func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpRenew && rep.Code == lease.CodeLost && req.Token < rec.Token {
					extend(req, rep, rec)
				}
			}
		}},
		{"a renewal after a lapse is granted", "rules/renew-after-a-lapse", "renew-only-while-held", func(s *server) {
			s.before = func(now time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpRenew && rec.Status == lease.Running && rec.Holder == req.Holder {
					rec.Expires = max(rec.Expires, now+1)
				}
			}
		}},
		{"a renewal after a release is granted", "rules/renew-after-a-release", "renew-only-while-held", func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpRenew && rec.Status == lease.Free && rec.Token == req.Token {
					extend(req, rep, rec)
				}
			}
		}},
		{"a renewal draws a token", "rules/renew-prolongs", "renew-keeps-the-token", func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpRenew && rep.Code == lease.CodeGranted {
					rec.Token++
					rep.Token++
				}
			}
		}},
		{"a release is forgotten", "rules/release-frees-at-once", "release-frees-at-once", func(s *server) {
			s.instead = func(s *server, _ string, req lease.Request) (lease.Reply, bool) {
				return lease.Reply{Code: lease.CodeReleased, Op: req.Op}, req.Op == lease.OpRelease
			}
		}},
		{"a refusal names whoever asked", "rules/acquire-held-is-refused", "refusal-names-the-holder", func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, _ *lease.Record) {
				if rep.Code == lease.CodeHeld && req.Op == lease.OpAcquire {
					rep.Current = req.Holder
				}
			}
		}},
		{"a refusal says that it stands for ever", "rules/acquire-held-is-refused", "remaining-is-true", func(s *server) {
			s.after = func(_ lease.Request, rep *lease.Reply, _ *lease.Record) { rep.Remaining *= 10 }
		}},
		{"who has it? whoever had it last", "rules/get", "get-tells-the-truth", func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpGet {
					rep.Current, rep.Token = rec.Holder, rec.Token
				}
			}
		}},
		{"a TTL of zero is granted", "rules/malformed", "malformed-is-refused", func(s *server) {
			s.before = func(_ time.Duration, _ *lease.Record, req *lease.Request) { req.TTL = max(req.TTL, 1) }
		}},
		{"a call that was given up breaks those after it", "rules/ended-contexts", kit.RulePanic, func(s *server) {
			n := 0
			s.before = func(time.Duration, *lease.Record, *lease.Request) {
				if n++; n > 3 {
					panic("connection busy")
				}
			}
		}},
		{"a lease of less than the least TTL lapses at once", "ttl/below-the-minimum", "lapses-not-early", func(s *server) {
			s.before = func(_ time.Duration, _ *lease.Record, req *lease.Request) {
				if req.TTL < 100*time.Millisecond {
					req.TTL = min(req.TTL, 1)
				}
			}
			s.after = func(req lease.Request, rep *lease.Reply, _ *lease.Record) {
				if rep.TTL == 1 && req.Op == lease.OpAcquire {
					rep.TTL = 100 * time.Millisecond
				}
			}
		}},
		{"the last holder gets its old token back", "tokens/after-a-lapse", "token-next-at-new-ownership", func(s *server) {
			s.before = func(now time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpAcquire && rec.Status == lease.Running && !rec.Held(now) && rec.Holder == req.Holder {
					rec.Token--
				}
			}
		}},
		{"a deletion deletes the counter", "tokens/after-a-deletion", "delete-keeps-the-counter", func(s *server) {
			s.erased = func(lease.Record) (lease.Record, bool) { return lease.Record{}, false }
		}},
		{"a deletion deletes nothing", "tokens/after-a-deletion", "delete-frees", func(s *server) {
			s.erased = func(rec lease.Record) (lease.Record, bool) { return rec, true }
		}},
		{"watchers of releases are told nothing", "watch/a-release-is-hinted", ruleHints, func(s *server) { s.mute = true }},
		{"watchers of holders are told nothing", "watch/a-change-of-holder-is-hinted", ruleHints, func(s *server) { s.mute = true }},
		{"watchers of deletions are told nothing", "watch/a-deletion-is-hinted", ruleHints, func(s *server) { s.mute = true }},
		{"watches never end", "watch/the-end-of-the-context-ends-the-watch", ruleEnds, func(s *server) { s.endless = true }},
		{"a batch is answered in another order", "batch/as-single-calls", ruleBatch, func(s *server) { s.mixed = true }},
		{"who holds it is looked up before, and not in one step", "storm/all-at-once", ruleHistory, checkThenAct},
		{"a renewal revives what was taken over", "storm/history", ruleHistory, func(s *server) {
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpRenew && rep.Code == lease.CodeLost {
					extend(req, rep, rec)
				}
			}
		}},
		{"everybody is granted it", "believers/never-two", ruleBelief, func(s *server) {
			s.before = func(_ time.Duration, rec *lease.Record, req *lease.Request) {
				if req.Op == lease.OpAcquire && rec.Holder != req.Holder {
					rec.Status = lease.Free
				}
				if req.Op == lease.OpRenew {
					req.Holder, req.Token = rec.Holder, rec.Token
				}
			}
			s.after = func(req lease.Request, rep *lease.Reply, rec *lease.Record) {
				if req.Op == lease.OpRenew && rep.Code == lease.CodeGranted {
					rep.Holder, rep.Token = req.Holder, req.Token
				}
			}
		}},
		{"a release frees nothing", "believers/never-two", ruleHandOver, func(s *server) {
			s.instead = func(s *server, _ string, req lease.Request) (lease.Reply, bool) {
				return lease.Reply{Code: lease.CodeReleased, Op: req.Op}, req.Op == lease.OpRelease
			}
		}},
		{"a restart loses the tenures", "restart/keeps-the-tenure", "restart-keeps-the-tenure", func(s *server) {
			s.revived = func(all map[string]lease.Record) {
				for name, rec := range all {
					all[name] = rec.Delete()
				}
			}
		}},
		{"a restart loses the counters", "restart/keeps-the-counter", "restart-keeps-the-counter", func(s *server) {
			s.revived = func(all map[string]lease.Record) { clear(all) }
		}},
		{"a restart brings back what had lapsed", "restart/keeps-the-lapse", "restart-keeps-the-lapse", func(s *server) {
			s.revived = func(all map[string]lease.Record) {
				for name, rec := range all {
					if rec.Status == lease.Lapsed {
						rec.Status = lease.Running
						all[name] = lease.Restore(rec.Durable, s.clk.Now())
					}
				}
			}
		}},
		{"an expiry of the clock before the restart never comes", "restart/ends-the-tenure", "lapses-on-time", func(s *server) {
			s.revived = func(all map[string]lease.Record) {
				for name, rec := range all {
					rec.Expires += time.Hour
					all[name] = rec
				}
			}
		}},
	} {
		t.Run(c.flaw, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			c.of(s)
			out := taskOf(t, s, c.check)
			switch {
			case out.Failure == nil:
				t.Errorf("%s came to %+v; want a conviction", c.check, out)
			case out.Failure.Rule != c.rule:
				t.Errorf("%s convicts by %q; want %q\n%s", c.check, out.Failure.Rule, c.rule, out.Failure.Text(nil, ""))
			default:
				t.Log(out.Failure.Text(nil, ""))
			}
		})
	}
}

// checkThenAct looks who holds the lease, and takes it a moment later.
func checkThenAct(s *server) {
	s.instead = func(s *server, resource string, req lease.Request) (lease.Reply, bool) {
		if req.Op != lease.OpAcquire {
			return lease.Reply{}, false
		}
		s.mu.Lock()
		rec, now := s.records[resource], s.clk.Now()
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		next, rep := rec.Acquire(now, 0, req)
		if rep.Code == lease.CodeGranted {
			s.mu.Lock()
			s.records[resource] = next
			s.mu.Unlock()
		}
		return rep, true
	}
}
