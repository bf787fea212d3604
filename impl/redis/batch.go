package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
)

// Batch implements [lease.Batcher] in one round trip: a pipeline, of which each
// call is an atomic step of its own. A server that does not know the script yet
// takes two.
func (s *Store) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	answers := make([]lease.Answer, len(calls))
	var sent []int
	for i, c := range calls {
		switch {
		case malformed(c.Request):
			answers[i].Err = c.To(lease.CodeInvalid).Err(c.Resource)
		case ctx.Err() != nil:
			answers[i].Err = notDone(c.Op.String(), c.Resource, ctx.Err())
		default:
			sent = append(sent, i)
		}
	}
	sent = s.pipeline(ctx, calls, answers, sent, func(p goredis.Pipeliner, keys []string, args []any) *goredis.Cmd {
		return s.script.EvalSha(ctx, p, keys, args...)
	})
	// What the server does not know it has not run.
	s.pipeline(ctx, calls, answers, sent, func(p goredis.Pipeliner, keys []string, args []any) *goredis.Cmd {
		return s.script.Eval(ctx, p, keys, args...)
	})
	return answers
}

// pipeline makes those of calls whose indices are in which, and returns the
// indices of those for which the server lacks the script.
func (s *Store) pipeline(ctx context.Context, calls []lease.Call, answers []lease.Answer, which []int,
	eval func(goredis.Pipeliner, []string, []any) *goredis.Cmd) (unknown []int) {
	if len(which) == 0 {
		return nil
	}
	p := s.rdb.Pipeline()
	cmds := make([]*goredis.Cmd, len(which))
	for j, i := range which {
		c := calls[i]
		cmds[j] = eval(p, s.keys(c.Resource), s.args(c.Resource, c.Op.String(), c.Request))
	}
	p.Exec(ctx) // each command has its own error, that of the whole included
	for j, i := range which {
		c := calls[i]
		if goredis.HasErrorPrefix(cmds[j].Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
			continue
		}
		rep, err := s.read(cmds[j], c.Op.String(), c.Resource, c.Request)
		if err == nil {
			answers[i].Grant, err = granted(c.Resource, rep), rep.Err(c.Resource)
		}
		answers[i].Err = err
	}
	return unknown
}
