package redlock

import (
	"context"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/model"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// subject are the checks of Redlock whose grants n numbers.
func subject(clients []*goredis.Client, n numbering, rule model.TokenRule, restart func(context.Context) error) []kit.Check {
	s := newStore(clients, n)
	o := props.LiveOptions{TTL: 500 * time.Millisecond, Restart: restart}
	o.Tokens, o.SteadyClock, o.Terse, o.NoGet = rule, true, true, true
	o.Late = padded(10*time.Second) - 10*time.Second
	return livetest.StoreChecks(func(props.LiveEnv) lease.Store { return s }, o)
}

func mustCatch(t *testing.T, checks []kit.Check, name string) {
	t.Helper()
	f, err := kit.Convict(checks, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", f.Text(nil, ""))
}

// Numbered by a perfect oracle, and with all servers well, it keeps the rules:
// what is caught below is what it lacks, and not how it is asked.
func TestRedlockKeepsTheRulesWhileNothingFails(t *testing.T) {
	_, clients := five(t, server.Forgetful...)
	held := 0
	for _, c := range subject(clients, &oracle{}, model.TokensRising, nil) {
		if !strings.HasPrefix(c.Name, "rules/") {
			continue
		}
		out := kit.Guard(c.Run)
		if out.Failure != nil {
			t.Errorf("%s: %s", c.Name, out.Failure.Text(nil, ""))
		}
		if out.Covered != "" {
			held++
		}
	}
	if held < 10 {
		t.Errorf("%d checks held; expected: 10 or more", held)
	}
}

// The random value is no fencing token.
func TestRedlockHasNoFencingToken(t *testing.T) {
	_, clients := five(t, server.Forgetful...)
	mustCatch(t, subject(clients, random{}, model.TokensNext, nil), "rules/next-token")
}

// Servers that are upgraded one after the other, each back before the next goes,
// forget all leases: a majority was never away.
func TestARollingUpgradeForgetsWhoHolds(t *testing.T) {
	servers, clients := five(t, server.Forgetful...)
	rolling := func(ctx context.Context) error {
		for _, s := range servers {
			if err := s.Restart(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	mustCatch(t, subject(clients, &oracle{}, model.TokensRising, rolling), "restart/keeps-the-tenure")
}
