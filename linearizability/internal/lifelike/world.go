package lifelike

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"fencepost/linearizability"
)

// world is one run: a queue of what happens next, in real time.
type world struct {
	Config
	rng    *rand.Rand
	clock  clock
	first  uint64 // token
	ttl    int64  // the longest that is asked for: the unit of every pace
	now    int64
	queue  queue
	rec    recording
	leases []lease

	storages []storage
	left     int   // operations to call
	process  int64 // the next unused
	value    int64 // the last written
	planted  bool
}

func newWorld(c Config, yield func(linearizability.Event) bool) *world {
	w := &world{
		Config: c, rng: c.source(), left: c.Operations,
		leases: make([]lease, c.Leases), storages: make([]storage, c.Leases),
		ttl: int64(slices.Max(c.TTLs)),
	}
	w.first = c.First
	if w.first == 0 {
		w.first = 1 + w.rng.Uint64N(1000)
	}
	w.clock = clock{rng: w.rng, drift: c.Drift, stretch: w.ttl / 2}
	w.rec = newRecording(yield, int64(c.Eps), w.rng)
	w.now = int64(c.Eps)
	clients := make([]client, c.Leases*c.Clients)
	for i := range clients {
		clients[i] = client{w: w, id: i, lease: i / c.Clients, process: w.fresh(), beliefs: w.fresh()}
		clients[i].reincarnate()
		w.later(w.rng.Int64N(w.ttl), clients[i].act)
	}
	return w
}

// run carries out step after step, until nothing is left to do or nobody
// listens.
func (w *world) run() {
	for n := 0; len(w.queue.heap) > 0 && !w.rec.stopped; n++ {
		s := w.queue.pop()
		w.now = s.at
		s.run()
		if n%256 == 0 {
			// An acquire that queues reckons from its call on.
			w.clock.forget(w.now - 4*w.ttl)
		}
	}
	w.rec.flush(linearizability.Unbounded)
}

func (w *world) later(d int64, run func()) { w.queue.push(w.now+d, run) }

func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// fresh is a process that has not called yet.
func (w *world) fresh() int64 {
	w.process++
	return w.process - 1
}

// plant reports whether the bug of that name is to strike here. It says so
// once, at one of the opportunities after the first tenth of the run.
func (w *world) plant(name string) bool {
	if w.Bug != name || w.planted || w.left > w.Operations-w.Operations/10 || !w.chance(0.3) {
		return false
	}
	w.planted = true
	return true
}

// operation is one call on its way.
type operation struct {
	f       string
	process int64
	lease   int
	call    int64
	owner   string
	token   uint64
	ttl     int64
	k       int
	v       int64
	blocks  int64 // until when an acquire queues
	done    func(answer)
}

// queues reports whether o waits for its turn, which comes no sooner than at
// the given instant.
func (w *world) queues(o *operation, at int64) bool {
	return w.Anchor == linearizability.AnchorCall && at < o.blocks && w.now < o.blocks
}

// poll is how soon a queued acquire looks again whether its turn has come.
func (w *world) poll() int64 { return 1 + w.rng.Int64N(w.ttl/50) }

func (o *operation) onStorage() bool { return o.f == "write" || o.f == "fence" || o.f == "read" }

// fields are what the call carries.
func (w *world) fields(o *operation) []linearizability.Field {
	tokens := w.Tokens != linearizability.TokensNone
	fs := make([]linearizability.Field, 0, 5)
	key := "lease-"
	if o.onStorage() {
		key = "disk-"
	}
	fs = append(fs, text("key", key+strconv.Itoa(o.lease)))
	if o.owner != "" && o.f != "read" {
		fs = append(fs, text("owner", o.owner))
	}
	if tokens && o.token != 0 {
		fs = append(fs, number("token", o.token))
	}
	switch o.f {
	case "acquire", "renew":
		fs = append(fs, linearizability.Field{Name: "ttl", Value: linearizability.Int(o.ttl)})
	case "read":
		fs = append(fs, text("k", keyName(o.k)))
	case "write":
		fs = append(fs, text("k", keyName(o.k)), linearizability.Field{Name: "v", Value: linearizability.Int(o.v)})
	}
	return fs
}

func keyName(k int) string { return string(rune('x' + k)) }

// call sends an operation on its way: it reaches its server once, or never, and
// what the network makes of it besides is an operation of its own. The function
// done is called with the answer, or with none (of type Info) after a timeout.
func (w *world) call(o *operation, done func(answer)) {
	o.call, o.done = w.now, done
	fields := w.fields(o)
	w.event(o.process, linearizability.Invoke, o.f, fields...)
	if w.chance(0.005) {
		w.later(w.delay(), func() { w.answer(o, refusal("not-sent")) })
		return
	}
	switch {
	case !w.chance(w.Unknown):
		w.later(w.delay(), func() { w.serve(o, true) })
	default:
		switch w.rng.IntN(3) {
		case 0: // the request is lost
		case 1: // the reply is lost
			w.later(w.delay(), func() { w.serve(o, false) })
		case 2:
			w.later(w.muchLater(), func() { w.serve(o, false) })
		}
		w.later(w.ttl/10+w.rng.Int64N(w.ttl/5), func() {
			if w.chance(0.5) {
				w.event(o.process, linearizability.Info, o.f)
			}
			done(answer{typ: linearizability.Info})
		})
	}
	if o.f != "get" && o.f != "read" && w.chance(w.Duplicates) {
		twin := *o
		twin.process, twin.done = w.fresh(), nil
		w.event(twin.process, linearizability.Invoke, o.f, fields...)
		if w.chance(0.3) {
			w.event(twin.process, linearizability.Info, o.f)
		}
		w.later(w.muchLater(), func() { w.serve(&twin, false) })
	}
}

// delay is that of a message; muchLater that of one which everybody has given
// up on.
func (w *world) delay() int64     { return 1 + w.rng.Int64N(w.ttl/40) }
func (w *world) muchLater() int64 { return 1 + w.rng.Int64N(3*w.ttl) }

// serve is the instant at which o takes effect.
func (w *world) serve(o *operation, reply bool) {
	var a answer
	if o.onStorage() {
		a = w.serveStorage(o)
	} else {
		a = w.serveLease(o)
	}
	switch {
	case a.wait:
		w.later(w.poll(), func() { w.serve(o, reply) })
	case reply:
		w.later(w.delay(), func() { w.answer(o, a) })
	}
}

func (w *world) answer(o *operation, a answer) {
	w.event(o.process, a.typ, o.f, a.fields...)
	o.done(a)
}

// strike is what befalls the service as a whole, besides the operations.
func (w *world) strike(lease int) {
	if w.chance(w.Restarts) {
		w.operator(&operation{f: "restart"}, w.restart)
	}
	if w.Storage && w.chance(w.Restarts) {
		w.event(linearizability.NoProcess, linearizability.Info, "restart-storage", text("key", "disk-"+strconv.Itoa(lease)))
		w.restartStorage(lease)
	}
	if w.chance(w.Deletes) {
		o := &operation{f: "delete", lease: lease}
		w.operator(o, func() { w.serveLease(o) })
	}
	if w.chance(w.Unknown / 10) {
		w.event(linearizability.NoProcess, linearizability.Info, "partition")
	}
}

// operator is an operation by somebody who comes once.
func (w *world) operator(o *operation, effect func()) {
	p := w.fresh()
	var fields []linearizability.Field
	if o.f == "delete" {
		fields = w.fields(o)
	}
	w.event(p, linearizability.Invoke, o.f, fields...)
	known := !w.chance(w.Unknown)
	if !known && w.chance(0.5) {
		return // it never happened
	}
	w.later(w.delay(), func() {
		effect()
		if known {
			w.later(w.delay(), func() { w.event(p, linearizability.OK, o.f) })
		}
	})
}

func (w *world) event(p int64, t linearizability.Type, f string, fields ...linearizability.Field) {
	w.rec.add(w.now, linearizability.Event{Process: p, Type: t, F: f, Fields: fields})
}

func text(name, s string) linearizability.Field {
	return linearizability.Field{Name: name, Value: linearizability.String(s)}
}

func number(name string, n uint64) linearizability.Field {
	return linearizability.Field{Name: name, Value: linearizability.Uint(n)}
}
