package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// Run campaigns for the resources of the group until ctx ends, and returns
// context.Cause(ctx). It calls Lead, Logger and Observer on the caller's
// goroutine.
//
// When ctx ends, so do all terms, but their leases are kept while their work
// stops, for [GroupConfig.Drain] and then for what is left of the window; each is
// released when its work is done by then. Run waits for all work, and returns when
// the last calls were answered, or given up: see [GroupConfig.ReleaseTimeout]. Its goroutines
// have ended then, except for calls that ignored the end of their context,
// which the Logger is told.
//
// Run may be called again after it returned; during, the error matches
// [ErrRunning].
func (g *Group) Run(ctx context.Context) error {
	k, err := g.start(ctx)
	if err != nil {
		return err
	}
	go k.run()
	defer func() {
		// Already done, but for a panic.
		k.quit(errLeadExited)
		k.news.close()
		<-k.done
	}()
	for {
		select {
		case <-k.news.ready:
			k.news.tell()
		case <-k.done:
			k.news.tell()
			return k.err
		}
	}
}

// errLeadExited is why all terms of a group end when its Lead has panicked or
// ended its goroutine.
var errLeadExited = errors.New("lease group: Lead panicked or exited; all its leases are released")

// maxNews bounds what waits to be told, but for the terms that have begun: there
// is one at most for each resource.
const maxNews = 1 << 16

// news is what a keeper has to tell: it never waits for those that are told.
type news struct {
	lead     func(context.Context, Term, func())
	observer Observer
	log      *slog.Logger
	ready    chan struct{} // has room for one: something is in items

	mu     sync.Mutex
	items  []item
	lost   int
	closed bool
}

// item is one piece of news: of its parts only one is set.
type item struct {
	event Event
	work  *stint
	done  func()
	level slog.Level
	msg   string
	args  []any
}

func newNews(opts GroupConfig) *news {
	n := &news{lead: opts.Lead, observer: opts.Observer, ready: make(chan struct{}, 1)}
	if opts.Logger != nil {
		n.log = opts.Logger.With("node", opts.Node)
	}
	return n
}

// observed reports whether events are worth making.
func (n *news) observed() bool { return n.observer != nil }

func (n *news) put(i item) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed && i.work != nil:
		i.done()
		return
	case n.closed:
		return
	case len(n.items) >= maxNews && i.work == nil:
		n.lost++
		return
	}
	n.items = append(n.items, i)
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

func (n *news) begin(w *stint, done func()) { n.put(item{work: w, done: done}) }

func (n *news) warn(msg string, args ...any) {
	if n.log != nil {
		n.put(item{level: slog.LevelWarn, msg: msg, args: args})
	}
}

func (n *news) event(e Event) {
	if n.observer != nil {
		n.put(item{event: e})
	}
	if n.log == nil {
		return
	}
	switch e.Kind {
	case EventTermBegan:
		n.put(item{level: slog.LevelInfo, msg: "term begins", args: []any{"resource", e.Resource, "holder", e.Holder.String(), "token", e.Token}})
	case EventTermEnded:
		n.put(item{level: slog.LevelInfo, msg: "term ends", args: []any{"resource", e.Resource, "holder", e.Holder.String(), "token", e.Token, "cause", e.Err}})
	}
}

// tell says all that waits.
func (n *news) tell() {
	n.mu.Lock()
	items, lost := n.items, n.lost
	n.items, n.lost = nil, 0
	n.mu.Unlock()
	told := 0
	defer func() {
		// On the way out of a panic: who is not told of a term does nothing under it.
		for _, i := range items[told:] {
			if i.work != nil {
				i.done()
			}
		}
	}()
	for _, i := range items {
		switch {
		case i.work != nil:
			n.lead(i.work.ctx, i.work.Term, i.done)
		case i.msg != "":
			n.log.Log(context.Background(), i.level, i.msg, i.args...)
		default:
			n.observer.Observe(i.event)
		}
		told++
	}
	if lost > 0 && n.log != nil {
		n.log.Warn("events dropped: Logger, Observer or Lead is too slow", "events", lost)
	}
}

// close lets nobody be told any more.
func (n *news) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, i := range n.items {
		if i.work != nil {
			i.done()
		}
	}
	n.items = nil
}
