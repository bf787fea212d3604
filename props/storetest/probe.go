package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// probe asks one store directly, where a script cannot say what is asked, and
// writes down what was said.
type probe struct {
	lab   *kit.Lab[lease.Store]
	lock  string // what the store knows the resource lock by
	o     kit.Options
	t     times
	rule  verdict
	at    time.Duration // since the beginning
	names bool          // of resources are told
	lines []probeLine
}

// verdict is the rule that a probe looks after, as a failure tells it.
type verdict struct{ name, says, read string }

type probeLine struct {
	at            time.Duration
	asked, answer string
}

// ask runs f against a fresh store. f ends early where the store is convicted.
func ask(open script.Open, o kit.Options, rule verdict, f func(*probe)) kit.Outcome {
	return kit.Try(func() kit.Outcome {
		lab := newLab(open, o)
		defer lab.Close()
		return askOn(lab, lock, o, rule, f)
	})
}

// askOn is ask on a store that may have been asked about other resources before.
func askOn(lab *kit.Lab[lease.Store], resource string, o kit.Options, rule verdict, f func(*probe)) (out kit.Outcome) {
	o = o.For(lab.Thing())
	p := &probe{lab: lab, lock: resource, o: o, t: timesOf(o), rule: rule}
	lab.Tell(p.stuck)
	defer func() {
		switch err := recover().(type) {
		case nil:
		case conviction:
			out = kit.Outcome{Failure: p.failure(string(err))}
		case notApplicable:
			out = kit.Outcome{Skipped: string(err)}
		default:
			panic(err)
		}
	}()
	f(p)
	return kit.Outcome{Covered: p.covered()}
}

// conviction and notApplicable end a probe, whose steps would otherwise each
// have to say whether there is a next one.
type (
	conviction    string
	notApplicable string
)

// want convicts the store for its latest answer: a correct one is this.
func (p *probe) want(format string, args ...any) { panic(conviction(fmt.Sprintf(format, args...))) }

func (p *probe) skip(why string) { panic(notApplicable(why)) }

func (p *probe) failure(want string) *kit.Failure {
	last := p.lines[len(p.lines)-1]
	what := fmt.Sprintf("%s, and the answer was \"%s\"; expected: %s", last.asked, last.answer, want)
	return &kit.Failure{Rule: p.rule.name, Says: p.rule.says, What: what, Story: p.story(want), Read: p.rule.read, Log: p.lab.Log()}
}

// stuck tells of a call that does not return: see [kit.Watch.Tell].
func (p *probe) stuck(within string) *kit.Failure {
	f := &kit.Failure{Says: script.Returns, Read: "go doc fencepost/impl/lease Store", Log: p.lab.Log()}
	told := probe{lines: slices.Clone(p.lines)}
	if within != "" {
		told.lines = append(told.lines, probeLine{p.at, within, ""})
	}
	if n := len(told.lines); n > 0 {
		last := &told.lines[n-1]
		f.What, last.answer = `"`+last.asked+`"`, "no answer"
		f.Story = told.story("an answer, at once")
	}
	return f
}

const (
	storyLines = 9   // of what happened: the end of it
	storyWidth = 110 // up to which the correct answer stands beside the wrong one
)

func (p *probe) story(want string) []string {
	lines := p.lines
	var out []string
	if n := len(lines) - storyLines; n > 0 {
		lines = lines[n:]
		out = append(out, fmt.Sprintf("(%d steps before)", n))
	}
	var instants, asks int
	for _, l := range lines {
		instants = max(instants, utf8.RuneCountInString(l.at.String()))
		asks = max(asks, utf8.RuneCountInString(l.asked))
	}
	for _, l := range lines {
		out = append(out, strings.TrimRight(fmt.Sprintf("%*v  %-*s  %s", instants, l.at, asks, l.asked, l.answer), " "))
	}
	last := &out[len(out)-1]
	*last += "  ◄"
	if why := " expected: " + want; utf8.RuneCountInString(*last+why) <= storyWidth {
		*last += why
	} else {
		out = append(out, strings.Repeat(" ", instants)+" "+why)
	}
	return out
}

func (p *probe) covered() string {
	n := 0
	for _, l := range p.lines {
		if l.answer != "" {
			n++
		}
	}
	return fmt.Sprintf("%d answers", n)
}

// call writes down what f's request was answered. A panic of the store convicts
// it, whatever the rule.
func (p *probe) call(asked string, f func() (string, error)) error {
	p.lines = append(p.lines, probeLine{p.at, asked, ""})
	l := &p.lines[len(p.lines)-1]
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(*kit.SetupError); ok {
				panic(r)
			}
			l.answer = "panic: " + clip(fmt.Sprint(r))
			p.want("an answer, or an error")
		}
	}()
	var said string
	var err error
	p.lab.Call(func() { said, err = f() })
	l.answer = said
	if err != nil {
		l.answer = refusal(err)
	}
	return err
}

// acquireOdd, unlike acquire, takes the answer as it is: no grant is usable.
func (p *probe) acquireOdd(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	err = p.call(fmt.Sprintf("%s acquires%s for %s%s", who(h), p.lease(resource), span(ttl), under(ctx)), func() (string, error) {
		g, err = p.lab.Thing().Acquire(ctx, p.known(resource), h, ttl)
		return granted(g), err
	})
	return g, err
}

func (p *probe) acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	g, err = p.acquireOdd(ctx, resource, h, ttl)
	if err == nil {
		p.usable(g, resource, h)
	}
	return g, err
}

// renewOdd likewise.
func (p *probe) renewOdd(ctx context.Context, resource string, h lease.Holder, token lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	err = p.call(fmt.Sprintf("%s renews%s under token %d for %s%s", who(h), p.lease(resource), token, span(ttl), under(ctx)), func() (string, error) {
		g, err = p.lab.Thing().Renew(ctx, p.known(resource), h, token, ttl)
		return granted(g), err
	})
	return g, err
}

func (p *probe) renew(ctx context.Context, resource string, h lease.Holder, token lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	g, err = p.renewOdd(ctx, resource, h, token, ttl)
	if err == nil {
		p.usable(g, resource, h)
		if g.Token != token {
			p.want("a renewal keeps its token, %d", token)
		}
	}
	return g, err
}

func (p *probe) release(ctx context.Context, resource string, h lease.Holder, token lease.Token) error {
	return p.call(fmt.Sprintf("%s releases%s under token %d%s", who(h), p.lease(resource), token, under(ctx)), func() (string, error) {
		return "released", p.lab.Thing().Release(ctx, p.known(resource), h, token)
	})
}

// get is nobody where the store cannot say, and then ok is false.
func (p *probe) get(resource string) (o lease.Observation, ok bool) {
	if p.o.NoGet {
		return o, false
	}
	asked := "who holds it?"
	if p.names {
		asked = "who holds" + p.lease(resource) + "?"
	}
	err := p.call(asked, func() (said string, err error) {
		o, err = p.lab.Thing().Get(context.Background(), p.known(resource))
		return observed(o), err
	})
	return o, err == nil
}

func observed(o lease.Observation) string {
	if o.Holder.IsZero() {
		return "nobody"
	}
	return fmt.Sprintf("%s under token %d", who(o.Holder), o.Token)
}

func (p *probe) advance(d time.Duration) {
	p.lab.Advance(d)
	p.at += d
}

// note is a line of the story that the store does not answer.
func (p *probe) note(what string) { p.lines = append(p.lines, probeLine{p.at, what, ""}) }

func (p *probe) restart() {
	p.note("the store crashes and restarts")
	p.lab.Restart()
}

// known is what the store knows a resource by.
func (p *probe) known(resource string) string {
	if resource == lock {
		return p.lock
	}
	return resource
}

// usable convicts a store whose grant nobody could lead under.
func (p *probe) usable(g lease.Grant, resource string, h lease.Holder) {
	switch {
	case g.Token == 0:
		p.want("a grant has a token, from 1 on")
	case g.Holder != h:
		p.want("a grant says to whom it is, %s; this is to %s", who(h), who(g.Holder))
	case g.Resource != p.known(resource):
		p.want("a grant says what it is of, %s; this is of %s", name(resource), name(g.Resource))
	case g.TTL <= 0:
		p.want("a grant says for how long it is, above zero")
	}
}

// mustAcquire, mustRenew, mustRelease and mustRefuse convict a store that
// answers otherwise.
func (p *probe) mustAcquire(resource string, h lease.Holder, why string) lease.Grant {
	g, err := p.acquire(context.Background(), resource, h, p.t.ttl)
	if err != nil {
		p.want("granted: %s", why)
	}
	return g
}

func (p *probe) mustRenew(resource string, h lease.Holder, token lease.Token, why string) {
	if _, err := p.renew(context.Background(), resource, h, token, p.t.ttl); err != nil {
		p.want("granted: %s", why)
	}
}

func (p *probe) mustRelease(resource string, h lease.Holder, token lease.Token) {
	if err := p.release(context.Background(), resource, h, token); err != nil {
		p.want("released: %s holds it", who(h))
	}
}

func (p *probe) mustRefuse(resource string, h lease.Holder, why string) {
	if _, err := p.acquire(context.Background(), resource, h, p.t.ttl); err == nil {
		p.want("refused: %s", why)
	}
}

// follows convicts a store whose new ownership has the wrong token.
func (p *probe) follows(before, after lease.Token) {
	switch {
	case p.o.Tokens == model.TokensNext && after != before+1:
		p.want("granted under token %d: the last was %d", before+1, before)
	case after <= before:
		p.want("granted under a token above %d, the last", before)
	}
}

// isRefusal reports whether err says that the store decided against the
// request, and not that its outcome is unknown.
func isRefusal(err error) bool { return lease.Refusal(err) != lease.CodeNone }

// refusal is err in a few words.
func refusal(err error) string {
	switch lease.Refusal(err) {
	case lease.CodeHeld:
		e, _ := errors.AsType[*lease.HeldError](err)
		if e.Holder.IsZero() {
			return "refused: held"
		}
		return fmt.Sprintf("refused: %s holds it under token %d for another %s", who(e.Holder), e.Token, span(e.Remaining))
	case lease.CodeDelayed:
		return "refused: lock delay"
	case lease.CodeLapsed:
		return "refused: lapsed"
	case lease.CodeLost:
		return "refused: not held"
	case lease.CodeInvalid:
		return "refused: invalid"
	}
	return "error: " + clip(err.Error())
}

// lease names the resource where that matters.
func (p *probe) lease(resource string) string {
	if !p.names {
		return ""
	}
	return " " + name(resource)
}

func under(ctx context.Context) string {
	if ctx.Err() != nil {
		return ", its context ended"
	}
	return ""
}

func granted(g lease.Grant) string {
	return fmt.Sprintf("granted: token %d for %s", g.Token, span(g.TTL))
}

// who is a holder in a story: its node alone where it is one of ours.
func who(h lease.Holder) string {
	switch h {
	case lease.Holder{}:
		return "nobody"
	case node("a"), node("b"), node("c"):
		return h.Node
	}
	s := fmt.Sprintf("%s#%d.%x", h.Node, h.Seq, h.Nonce)
	return name(s)
}

// name quotes what may be odd, and shortens it in the middle: what tells two
// long names apart is often their end.
func name(s string) string {
	const keep = 12
	if len(s) > 4*keep {
		return fmt.Sprintf("%+q…%+q (%d bytes)", s[:keep], s[len(s)-keep:], len(s))
	}
	return fmt.Sprintf("%+q", s)
}

// clip keeps what a store says to a line.
func clip(s string) string {
	const limit = 60
	s, _, _ = strings.Cut(s, "\n")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// span is a duration as people say it where it is none.
func span(d time.Duration) string {
	switch {
	case d >= century:
		return fmt.Sprintf("%d years", int64(d/year))
	case d < 0 && d <= -century:
		return fmt.Sprintf("-%d years", int64(-(d / year)))
	}
	return d.String()
}

const (
	year    = 365 * 24 * time.Hour
	century = 100 * year
)

// node is a holder that a well-behaved candidate might be.
func node(n string) lease.Holder { return lease.Holder{Node: n, Seq: 1, Nonce: 0x5eed} }
