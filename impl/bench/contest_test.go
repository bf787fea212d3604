package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"fencepost/props/daemon"
)

// contest is one resource and its two candidates. It belongs to one goroutine.
type contest struct {
	job     job
	seats   [2]*process // who stands
	made    int         // candidates so far
	heard   chan heard
	readers sync.WaitGroup
	leads   []interval
	leading map[*process]time.Duration // since when
}

// interval is how long one candidate believed that it leads.
type interval struct{ from, to time.Duration }

// process is a candidate.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	told   string // the last that it was told
	killed bool
}

// heard is what a candidate said.
type heard struct {
	by   *process
	what string
	at   time.Duration
}

var errEnded = errors.New("a candidate has ended by itself")

func newContest(j job) *contest {
	return &contest{job: j, heard: make(chan heard), leading: map[*process]time.Duration{}}
}

// seat starts a candidate, that campaigns at once.
func (c *contest) seat(i int) error {
	j := c.job
	c.made++
	j.Name = fmt.Sprintf("candidate-%d", c.made)
	spec, err := daemon.Self(j)
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(spec.Command[0])}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), spec.Env...), io.Discard
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.seats[i] = p
	c.readers.Go(func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			what, at, _ := strings.Cut(in.Text(), " ")
			if ns, err := strconv.ParseInt(at, 10, 64); err == nil {
				c.heard <- heard{by: p, what: what, at: time.Duration(ns)}
			}
		}
		p.cmd.Wait()
		c.heard <- heard{by: p}
	})
	return p.tell(sayCampaign)
}

func (p *process) tell(what string) error {
	p.told = what
	_, err := fmt.Fprintln(p.in, what)
	return err
}

// hear takes what h says, and sends who has lost the lead unasked to campaign again.
func (c *contest) hear(h heard) error {
	switch {
	case h.what == sayLead:
		c.leading[h.by] = h.at
	case h.what == sayLost:
		c.ends(h.by, h.at)
		if h.by.told != sayResign {
			return h.by.tell(sayCampaign)
		}
	case !h.by.killed:
		return errEnded
	}
	return nil
}

func (c *contest) ends(p *process, at time.Duration) {
	if from, ok := c.leading[p]; ok {
		c.leads = append(c.leads, interval{from: from, to: at})
		delete(c.leading, p)
	}
}

// listen hears candidates until one of them says what, or for d.
func (c *contest) listen(ctx context.Context, d time.Duration, what func(heard) bool) (heard, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errSilence)
	defer cancel()
	for {
		select {
		case h := <-c.heard:
			if err := c.hear(h); err != nil {
				return heard{}, err
			}
			if what(h) {
				return h, nil
			}
		case <-ctx.Done():
			return heard{}, context.Cause(ctx)
		}
	}
}

var errSilence = errors.New("nobody said anything for long")

// patience is for how long no resource may be without a leader.
const patience = time.Minute

// leader is the seat of one who leads now, and has for as long as settle.
func (c *contest) leader(ctx context.Context, settle time.Duration) (int, error) {
	for {
		if len(c.leading) == 0 {
			if _, err := c.listen(ctx, patience, func(heard) bool { return len(c.leading) > 0 }); err != nil {
				return 0, err
			}
		}
		changed, err := c.listen(ctx, settle, func(heard) bool { return true })
		switch {
		case errors.Is(err, errSilence):
			for i, p := range c.seats {
				if _, ok := c.leading[p]; ok {
					return i, nil
				}
			}
		case err != nil:
			return 0, fmt.Errorf("%w: %v", err, changed)
		}
	}
}

// resignation has the leader resign, and says how long it took until the other led.
func (c *contest) resignation(ctx context.Context, settle time.Duration) (time.Duration, error) {
	i, err := c.leader(ctx, settle)
	if err != nil {
		return 0, err
	}
	old, next := c.seats[i], c.seats[1-i]
	if err := old.tell(sayResign); err != nil {
		return 0, err
	}
	lost, err := c.listen(ctx, patience, func(h heard) bool { return h.by == old && h.what == sayLost })
	if err != nil {
		return 0, err
	}
	began, ok := c.leading[next]
	if !ok {
		h, err := c.listen(ctx, patience, func(h heard) bool { return h.by == next && h.what == sayLead })
		if err != nil {
			return 0, err
		}
		began = h.at
	}
	return began - lost.at, old.tell(sayCampaign)
}

// kill kills the leader, says how long it took until the other led, and seats one
// more.
func (c *contest) kill(ctx context.Context, settle time.Duration) (time.Duration, error) {
	i, err := c.leader(ctx, settle)
	if err != nil {
		return 0, err
	}
	old, next := c.seats[i], c.seats[1-i]
	at := boot.Now()
	if err := old.kill(); err != nil {
		return 0, err
	}
	c.ends(old, boot.Now())
	h, err := c.listen(ctx, patience, func(h heard) bool { return h.by == next && h.what == sayLead })
	if err != nil {
		return 0, err
	}
	return h.at - at, c.seat(i)
}

func (p *process) kill() error {
	p.killed = true
	return p.cmd.Process.Kill()
}

// close kills whoever is left, and returns all intervals of lead.
func (c *contest) close() []interval {
	for _, p := range c.seats {
		if p != nil {
			p.kill()
		}
	}
	gone := make(chan struct{})
	go func() { c.readers.Wait(); close(gone) }()
	for open := true; open; {
		select {
		case h := <-c.heard:
			c.hear(h)
		case <-gone:
			open = false
		}
	}
	for p := range c.leading {
		c.ends(p, boot.Now())
	}
	return c.leads
}
