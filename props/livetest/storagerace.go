package livetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
	"fencepost/props/kit"
	"fencepost/props/storagetest"
)

const (
	raceWriters = 4   // under either token
	raceWrites  = 8   // of each before its successor comes, and after
	raceMost    = 100 // of each, however long the fence takes
	raceRounds  = 3
	raceKeys    = 2
)

// race has a leader's many writes cross those of its successor, which fences in
// the middle of them: afterwards nothing of the former lands.
func (s *storage) race() {
	stale := 0
	for range raceRounds {
		h := s.raceRound()
		o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelStorage}, Memory: searchMemory}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		v, err := linearizability.Check(ctx, h, o)
		cancel()
		switch {
		case err != nil:
			panic(unproved(fmt.Sprintf("the history makes no sense: %v", err)))
		case v.Result == linearizability.Violated:
			panic(conviction{s.convictRace(h, v, o)})
		case v.Result == linearizability.Unknown:
			panic(unproved(v.Reason))
		}
		for i := range h.Events {
			if e := &h.Events[i]; e.Type == linearizability.Fail {
				stale++
			}
		}
		s.tell(fmt.Sprintf("%d writers under two tokens", 2*raceWriters), fmt.Sprintf("%d operations, which some order explains", v.Activity.Operations))
	}
	if stale == 0 {
		panic(unproved("too little happened: no write came too late"))
	}
}

// raceRound is one such race, as a history.
func (s *storage) raceRound() linearizability.History {
	var buf bytes.Buffer
	began := s.w.clk.Now()
	rec, err := linearizability.NewRecorder(&buf, linearizability.DefaultMeta(), func() time.Duration { return s.w.clk.Now() - began })
	if err != nil {
		panic(unproved(err.Error()))
	}
	kvs := make([]fence.KV, 3)
	for i := range kvs { // one storage, by whatever connection
		kvs[i] = record.NewStorage(&plainKV{s.w.process(i), s}, "storage", rec)
	}
	var keys [raceKeys]string
	for i := range keys {
		keys[i] = s.key()
	}
	old := s.grant()
	if err := kvs[0].Write(context.Background(), old, keys[0], "first"); err != nil {
		s.tell("the first write of a race", said(err, ""))
		s.ended(err)
		s.lands(err, higherTokenLands)
	}
	var wg, fenced sync.WaitGroup
	var mu sync.Mutex
	var first error // that is a fault whatever was asked
	writer := func(n int, token lease.Token, more func(i int) bool) {
		kv, rng := kvs[n%len(kvs)], rand.New(rand.NewPCG(uint64(n), uint64(token)))
		for i := 0; more(i); i++ {
			ctx, cancel := context.WithCancel(context.Background())
			if rng.IntN(20) == 0 { // given up within moments, so that nobody knows what came of it
				ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rng.IntN(2000))*time.Microsecond)
			}
			key := keys[rng.IntN(raceKeys)]
			err := kv.Write(ctx, token, key, fmt.Sprintf("%d.%d.%d", token, n, i))
			if !s.o.NoRead && rng.IntN(4) == 0 {
				kv.Read(context.Background(), key)
			}
			cancel()
			if fault("", err) != nil {
				mu.Lock()
				first = errors.Join(first, err)
				mu.Unlock()
				return
			}
		}
	}
	begun, barred := make(chan struct{}, raceWriters*(raceMost+1)), make(chan struct{})
	var olds sync.WaitGroup
	for n := range raceWriters {
		after := 0
		olds.Go(func() {
			writer(n, old, func(i int) bool {
				begun <- struct{}{}
				select {
				case <-barred:
					after++
				default:
				}
				return i < raceMost && after <= raceWrites
			})
		})
	}
	// The successor comes while they write, and they go on until it has fenced.
	gone := make(chan struct{})
	wg.Go(func() { olds.Wait(); close(gone) })
	for range raceWriters * raceWrites {
		select {
		case <-begun:
		case <-gone: // by a fault of one
		}
	}
	token := s.grant()
	fenced.Go(func() {
		if s.o.NoFence {
			kvs[1].Write(context.Background(), token, keys[1], "bar")
		} else {
			kvs[1].Fence(context.Background(), token)
		}
		close(barred)
		// What it reads now it decides by: nothing may change under it.
		for i := 0; i < 8*raceKeys && !s.o.NoRead; i++ {
			kvs[1].Read(context.Background(), keys[i%raceKeys])
			if i%raceKeys == raceKeys-1 {
				sleep(s.w.clk, s.w.clk.Now()+500*time.Microsecond)
			}
		}
	})
	for n := range raceWriters {
		wg.Go(func() {
			fenced.Wait()
			writer(raceWriters+n, token, func(i int) bool { return i < raceWrites })
		})
	}
	wg.Wait()
	// A late one, and whether anything has landed meanwhile.
	kvs[2].Write(context.Background(), old, keys[0], "late")
	for range 2 {
		for _, key := range keys {
			if !s.o.NoRead {
				kvs[0].Read(context.Background(), key)
			}
		}
		sleep(s.w.clk, s.w.clk.Now()+20*time.Millisecond)
	}
	if first != nil {
		s.tell("a write while others are under way", first.Error())
		s.ended(first)
	}
	if err := rec.Flush(); err != nil {
		panic(unproved(err.Error()))
	}
	h, err := linearizability.Read(&buf, "history")
	if err != nil {
		panic(unproved(fmt.Sprintf("the history cannot be read: %v", err)))
	}
	for i := range h.Events { // what plainKV did not say is not on record either
		e := &h.Events[i]
		e.Fields = slices.DeleteFunc(e.Fields, func(f linearizability.Field) bool { return f.Name == "highest" })
	}
	return h
}

// plainKV is a storage whose calls end, and whose refusals say no more than
// that: which token was the highest may have changed by the time that a right
// storage looks it up.
type plainKV struct {
	kv fence.KV
	s  *storage
}

func (p *plainKV) call(ctx context.Context, f func(context.Context) error) error {
	err := guarded(ctx, p.s.w.clk, patience, f)
	switch {
	case !errors.Is(err, fence.ErrStale):
		return err
	case p.s.leases != nil:
		return &fence.NotCarriedError{}
	}
	return &fence.StaleTokenError{}
}

func (p *plainKV) Fence(ctx context.Context, token lease.Token) error {
	return p.call(ctx, func(ctx context.Context) error { return p.kv.Fence(ctx, token) })
}

func (p *plainKV) Write(ctx context.Context, token lease.Token, key, value string) error {
	return p.call(ctx, func(ctx context.Context) error { return p.kv.Write(ctx, token, key, value) })
}

func (p *plainKV) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	var v string
	var found bool
	err = guarded(ctx, p.s.w.clk, patience, func(ctx context.Context) (err error) {
		v, found, err = p.kv.Read(ctx, key)
		return err
	})
	if err != nil {
		return "", false, err
	}
	return v, found, nil
}

// convictRace shows a small part of a violated history of the storage.
func (s *storage) convictRace(h linearizability.History, v linearizability.Verdict, o linearizability.Options) *kit.Failure {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if small, err := linearizability.Reduce(ctx, h, o); err == nil {
		h = small
	}
	says, read := storagetest.Says(concurrentCallsLinear)
	f := &kit.Failure{Rule: concurrentCallsLinear, Says: says, Read: read, Log: s.w.log.String(),
		What: "no order of these calls explains what they were told: " + v.Reason}
	var lines []line
	for _, op := range h.Ops() {
		e := &h.Events[op.Call]
		l := line{at: time.Duration(e.Time - h.Events[0].Time), times: 1, answer: "(answer does not matter)"}
		token, _ := e.Field("token").Uint()
		switch e.F {
		case "write":
			l.asked = fmt.Sprintf("write of %s=%s under token %d", text(e, "k"), text(e, "v"), token)
		case "fence":
			l.asked = fmt.Sprintf("fence of token %d", token)
		default:
			l.asked = "read of " + text(e, "k")
		}
		if op.Return >= 0 {
			switch r := &h.Events[op.Return]; {
			case r.Type == linearizability.Info:
				l.answer = "error: " + text(r, "error")
			case r.Type == linearizability.Fail:
				l.answer = "refused: " + text(r, "error")
			case e.F == "read":
				l.answer = orNothing(text(r, "v"))
			default:
				l.answer = "done"
			}
		}
		lines = append(lines, l)
	}
	f.Story = layOut(lines, "")
	var data bytes.Buffer
	if err := h.WriteJSON(&data); err == nil {
		file := kit.NewFile("live", "jsonl", data.Bytes())
		f.File = &file
	}
	return f
}
