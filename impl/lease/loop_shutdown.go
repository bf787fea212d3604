package lease

import "log/slog"

// shutdown leaves nothing behind, if it can: what is held is released, also
// what an acquire under way is granted yet, and all calls have ended. It takes
// one release timeout until the last call is cancelled, and gives those that
// ignore that another.
func (l *loop) shutdown() {
	now := l.e.clk.Now()
	cut := add(now, l.e.opts.ReleaseTimeout)
	leave := add(cut, l.e.opts.ReleaseTimeout)
	l.send(l.client.Resign(now))
	watched := l.hints.done
	for {
		left := 0
		for t := range l.targets() {
			left += len(t.calls)
			for _, c := range t.calls {
				c.until = min(c.until, cut)
				if c.req.Op != OpAcquire && c.req.Op != OpRelease {
					c.giveUp()
				}
			}
		}
		l.tell()
		if left == 0 && watched == nil {
			return
		}
		l.sleep(min(leave, l.nextCancel()))
		select {
		case <-watched:
			watched = nil
		case <-l.timer.C():
			l.awake()
			now := l.e.clk.Now()
			l.cancelDue(now)
			if now >= leave {
				l.log(slog.LevelWarn, "calls left behind: they ignore the end of their context", "calls", left, "watch", watched != nil)
				l.tell()
				return
			}
		case r := <-l.results:
			l.awake()
			if rep, known := l.take(r); known && rep.Op == OpAcquire {
				now := l.e.clk.Now()
				l.client.Receive(now, rep)
				l.send(l.client.Resign(now))
			}
		}
	}
}
