package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"fencepost/model"
)

// progress shows how far work has got while it runs, with a rate and an end,
// on a terminal only. total 0 stands for an end that only time sets. The
// returned function ends it, and returns when nothing more is drawn.
func (e *env) progress(what, unit string, total int64, done *atomic.Int64) (stop func()) {
	return e.watch(func() string { return what }, unit, total, done)
}

// exploring shows how far an exploration has got. Nobody knows the end of one:
// frontiers that shrink are the only sign of it.
func (e *env) exploring(p *model.ExploreProgress) (stop func()) {
	return e.watch(func() string { return standing(p) }, "states", 0, &p.States)
}

func standing(p *model.ExploreProgress) string {
	return fmt.Sprintf("depth %d: %s of %s expanded, %s", p.Depth.Load(), count(p.Expanded.Load()), count(p.Frontier.Load()), memory(uint64(p.Memory.Load())))
}

// watch asks what to say whenever it draws.
func (e *env) watch(what func() string, unit string, total int64, done *atomic.Int64) (stop func()) {
	if !e.terminal {
		return func() {}
	}
	if total == 0 {
		total = -1
	}
	// A spinner that turns by itself does so on a goroutine that nobody can wait
	// for.
	bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(e.err), progressbar.OptionSetDescription(what()),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(),
		progressbar.OptionSetSpinnerChangeInterval(0))
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				bar.Describe(what())
				bar.Set64(done.Load()) // a terminal that cannot be drawn to is no reason to stop
			case <-ctx.Done():
				bar.Finish()
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}
