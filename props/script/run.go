package script

import (
	"context"
	"math"
	"strconv"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// resources are the names of the leases that Step.On numbers, as a script is
// told. A store that has played others before knows them by other names.
var resources = [...]string{"shard-1", "shard-2"}

// Run plays steps against a fresh store, up to the first answer that breaks a
// rule. A store that panics or fails, with nobody disturbing it, breaks one
// too. One that never answers is waited for without end, unless open is
// [kit.Watched].
//
// Like [kit.NewLab] it panics with a *[kit.SetupError] where open gives up.
func Run(open Open, o kit.Options, steps []Step) Result {
	s := NewSeries(open, o)
	defer s.Close()
	return s.Run(steps)
}

// player plays one script against one store.
type player struct {
	lab    *kit.Lab[lease.Store]
	names  [len(resources)]string // of the leases
	opts   kit.Options            // with what the store is known to lack
	del    kit.Deleter            // nil if nobody can delete
	at     time.Duration
	leases [len(resources)]leaseState
	lines  []Line
	breach *model.Breach
	// logical judges by the time since the beginning, where the store's clock
	// may be anywhere. It is otherwise judged by that clock, so that what is
	// near the end of time is so for both.
	logical bool
	// deaf judges no details of refusals, for options that are Terse.
	deaf bool
}

// leaseState is one lease as those see it who asked.
type leaseState struct {
	contract model.Contract
	grants   []issued // the latest of each incarnation
	last     uint64   // token granted last, 0 for none
}

// issued is a token that who was granted.
type issued struct {
	who   Who
	token uint64
}

func newLab(open Open, o kit.Options) *kit.Lab[lease.Store] {
	lab := kit.NewLab(open, nil)
	lab.SteadyClock(o.SteadyClock)
	return lab
}

func newPlayer(open Open, o kit.Options) *player { return playerOn(newLab(open, o), o, 0) }

// playerOn is a player on a store that has played so many scripts before.
func playerOn(lab *kit.Lab[lease.Store], o kit.Options, before int) *player {
	p := &player{lab: lab}
	p.lab.Tell(p.stuck)
	p.opts = o.For(p.lab.Thing())
	p.capabilities()
	for i := range p.leases {
		p.names[i] = "shard-" + strconv.Itoa(before*len(resources)+i+1)
		p.leases[i].contract = model.NewContract(p.opts.Promise())
	}
	return p
}

func (p *player) capabilities() { p.del, _ = p.lab.Thing().(kit.Deleter) }

func (p *player) result() Result {
	for i := range p.lines {
		p.lines[i].describe()
	}
	return Result{Lines: p.lines, Breach: p.breach, Log: p.lab.Log()}
}

// play does s, and reports whether all is well.
func (p *player) play(s Step) bool {
	p.lines = append(p.lines, Line{Step: s, At: p.at})
	line := &p.lines[len(p.lines)-1]
	l := &p.leases[s.On]
	if s.Do.hasToken() {
		var ok bool
		if line.Token, ok = l.token(s.Token); !ok {
			line.NoOp = true
			return true
		}
	}
	switch {
	case s.Do == Get && p.opts.NoGet, s.Do == Restart && p.opts.Volatile, s.Do == Delete && p.del == nil:
		line.NoOp = true
		return true
	}
	was := p.now()
	var odd *model.Breach
	if p.lab.Call(func() { odd = p.do(line) }); odd != nil {
		p.breach = odd
		return false
	}
	switch s.Do {
	case Advance, Restart:
		p.passed(line, was)
	case Delete:
		if !line.NoOp {
			l.contract.Delete()
		}
	default:
		q := model.Ask{Op: ops[s.Do], Owner: owner(s.Who), Token: line.Token, TTL: int64(s.TTL), At: p.now()}
		said := line.Said
		if p.deaf {
			said.Remaining = 0
			if said.Code != model.CodeGranted && s.Do != Get {
				said.Holder, said.Token = model.Owner{}, 0
			}
		}
		if b, broken := l.contract.Judge(q, said); broken {
			p.breach = &b
			return false
		}
		if line.Said.Code == model.CodeGranted {
			l.granted(s.Who, line.Said.Token)
		}
	}
	return true
}

// share is play for an Advance or Restart that another player of the same store
// has just played. The clock read was before it.
func (p *player) share(s Step, was int64) {
	p.lines = append(p.lines, Line{Step: s, At: p.at})
	p.passed(&p.lines[len(p.lines)-1], was)
}

// passed takes into account what befell the store and all of its leases. The
// clock read was before it.
func (p *player) passed(line *Line, was int64) {
	if line.Step.Do == Advance {
		p.at = later(p.at, line.Step.D)
		return
	}
	line.steady = p.opts.SteadyClock
	p.capabilities()
	for i := range p.leases {
		p.leases[i].contract.Restart(was, p.now())
	}
}

// now is what the contract is told.
func (p *player) now() int64 {
	if p.logical {
		return int64(p.at)
	}
	return int64(p.lab.Clock().Now())
}

var ops = [kinds]model.Op{Acquire: model.OpAcquire, Renew: model.OpRenew, Release: model.OpRelease, Get: model.OpGet}

// do has the store do what line says and takes down its answer; what is no
// answer is a breach already.
func (p *player) do(line *Line) (odd *model.Breach) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(*kit.SetupError); ok {
				panic(r)
			}
			line.Answer = "panic: " + panicked(r)
			odd = &model.Breach{Rule: model.RuleAnswers, Want: "no panic"}
		}
	}()
	var err error
	ctx, store, resource := context.Background(), p.lab.Thing(), p.names[line.Step.On]
	holder, token, ttl := holderOf(line.Step.Who), lease.Token(line.Token), line.Step.TTL
	switch line.Step.Do {
	case Acquire:
		var g lease.Grant
		g, err = store.Acquire(ctx, resource, holder, ttl)
		if err == nil {
			return line.granted(g, resource, holder)
		}
	case Renew:
		var g lease.Grant
		g, err = store.Renew(ctx, resource, holder, token, ttl)
		if err == nil {
			return line.granted(g, resource, holder)
		}
	case Release:
		err = store.Release(ctx, resource, holder, token)
		if err == nil {
			line.Said = model.Said{Code: model.CodeReleased}
			return nil
		}
	case Get:
		var seen lease.Observation
		seen, err = store.Get(ctx, resource)
		if err == nil {
			line.observed(seen)
			return nil
		}
	case Advance:
		p.lab.Advance(line.Step.D)
		return nil
	case Restart:
		p.lab.Restart()
		return nil
	case Delete:
		if err = p.del.Delete(ctx, resource); err == nil {
			return nil
		}
		if p.leases[line.Step.On].contract.MayBeFree(p.now()) {
			line.NoOp = true // that there is nothing to delete may be an error
			return nil
		}
		line.failed(err)
		return noAnswer(line.Step)
	}
	return line.refused(err)
}

// token is the number that r stands for, if there is one.
func (l *leaseState) token(r Ref) (uint64, bool) {
	n := l.last
	if r.Of != (Who{}) {
		n = 0
		for _, g := range l.grants {
			if g.who == r.Of {
				n = g.token
			}
		}
	}
	if n == 0 || r.Plus < 0 && n < uint64(-int64(r.Plus)) || r.Plus > 0 && n > math.MaxUint64-uint64(r.Plus) {
		return 0, false
	}
	return n + uint64(int64(r.Plus)), true
}

func (l *leaseState) granted(who Who, token uint64) {
	l.last = token
	for i := range l.grants {
		if l.grants[i].who == who {
			l.grants[i].token = token
			return
		}
	}
	l.grants = append(l.grants, issued{who, token})
}

// later saturates: no clock reads beyond its last instant.
func later(at, d time.Duration) time.Duration {
	if s := at + d; s >= at || d <= 0 {
		return s
	}
	return math.MaxInt64
}
