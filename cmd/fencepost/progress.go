package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far work has got while it runs, with a rate and an end,
// on a terminal only. total 0 stands for an end that only time sets. The
// returned function ends it, and returns when nothing more is drawn.
func (e *env) progress(what, unit string, total int64, done *atomic.Int64) (stop func()) {
	if !e.terminal {
		return func() {}
	}
	if total == 0 {
		total = -1
	}
	bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(e.err), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				bar.Set64(done.Load()) // a terminal that cannot be drawn to is no reason to stop
			case <-ctx.Done():
				bar.Finish()
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}
