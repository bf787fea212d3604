package redis

import (
	"context"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
)

// perTrip is how many calls make one round trip: few enough to be written and
// answered well within the timeouts of a client.
const perTrip = 1000

// Batch implements [lease.Batcher] in one round trip for each thousand calls: a
// pipeline, of which each call is an atomic step of its own.
func (s *Store) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	answers := make([]lease.Answer, len(calls))
	var sent []int
	for i, c := range calls {
		if malformed(c.Request) {
			answers[i] = c.To(lease.CodeInvalid).Answer(c.Resource)
			continue
		}
		sent = append(sent, i)
	}
	for which := range slices.Chunk(sent, perTrip) {
		unknown := s.pipeline(ctx, calls, answers, which)
		if len(unknown) == 0 {
			continue
		}
		// What the server does not know it has not run. It is told once, and not
		// with each call: a script is many times as long as what it is called with.
		if err := s.script.Load(ctx, s.rdb).Err(); err != nil {
			for _, i := range unknown {
				answers[i].Err = notDone(calls[i].Op.String(), calls[i].Resource, err)
			}
			continue
		}
		s.pipeline(ctx, calls, answers, unknown)
	}
	return answers
}

// pipeline makes those of calls whose indices are in which, and returns the
// indices of those for which the server lacks the script.
func (s *Store) pipeline(ctx context.Context, calls []lease.Call, answers []lease.Answer, which []int) (unknown []int) {
	if err := ctx.Err(); err != nil {
		for _, i := range which {
			answers[i].Err = notDone(calls[i].Op.String(), calls[i].Resource, err)
		}
		return nil
	}
	p := s.rdb.Pipeline()
	cmds := make([]*goredis.Cmd, len(which))
	for j, i := range which {
		c := calls[i]
		cmds[j] = s.script.EvalSha(ctx, p, s.keys(c.Resource), s.args(c.Resource, c.Op.String(), c.Request)...)
	}
	p.Exec(ctx) // each command has its own error, that of the whole included
	for j, i := range which {
		c := calls[i]
		if goredis.HasErrorPrefix(cmds[j].Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
		}
		rep, err := s.read(cmds[j], c.Op.String(), c.Resource, c.Request)
		if err != nil {
			answers[i].Err = err
			continue
		}
		answers[i] = rep.Answer(c.Resource)
	}
	return unknown
}
