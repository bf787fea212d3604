package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// SettingError says which setting of a server could make it forget a token, or
// keeps that from being known.
type SettingError struct {
	Setting string // as in redis.conf, or the field of INFO, or the command that was refused
	Value   string
	Risk    string
	Todo    string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("redis: %s is %q: %s; %s, or put %q into Options.Accept", e.Setting, e.Value, e.Risk, e.Todo, e.Setting)
}

// Check asks the server, each primary of a cluster, for the settings under which
// it could issue a token twice. The error joins a *[SettingError] for each. Where
// a managed service forbids CONFIG it says so, and what to ask the provider.
func Check(ctx context.Context, rdb goredis.UniversalClient) error {
	return check(ctx, rdb, func(string) bool { return false })
}

func check(ctx context.Context, rdb goredis.UniversalClient, accepted func(setting string) bool) error {
	if cluster, ok := rdb.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return checkOne(ctx, c, accepted) })
	}
	return checkOne(ctx, rdb, accepted)
}

func checkOne(ctx context.Context, rdb goredis.UniversalClient, accepted func(setting string) bool) error {
	found, err := settings(ctx, rdb)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range found {
		if !accepted(f.Setting) {
			errs = append(errs, f)
		}
	}
	return errors.Join(errs...)
}

// settings are those that are not as they should be. The error is that of a
// server that does not answer.
func settings(ctx context.Context, rdb goredis.UniversalClient) (found []*SettingError, err error) {
	info, err := ask(rdb.Info(ctx).Result())
	if err != nil {
		return nil, err
	}
	if info == "" {
		found = append(found, &SettingError{"INFO", "refused", "nobody knows whether this is a primary", "allow it to this user"})
	} else {
		found = append(found, role(fields(info))...)
	}
	conf := map[string]string{}
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy"} {
		values, err := rdb.ConfigGet(ctx, name).Result()
		if forbidden(err) {
			return append(found, &SettingError{"CONFIG", "refused", "nobody knows whether the server keeps what it answers",
				"ask the provider for appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, maxmemory-policy noeviction and no failover"}), nil
		}
		if err != nil {
			return nil, fmt.Errorf("redis: asking for %s: %w", name, err)
		}
		conf[name] = values[name]
	}
	return append(found, persistence(conf)...), nil
}

func role(info map[string]string) (found []*SettingError) {
	if r := info["role"]; r != "master" {
		found = append(found, &SettingError{"role", r, "a replica takes no writes, and lags behind", "connect to the primary"})
	}
	if n := info["connected_slaves"]; n != "" && n != "0" {
		found = append(found, &SettingError{"connected_slaves", n,
			"a failover to a replica issues tokens again that it had not received, to somebody else",
			"have none, or see to it that none is ever promoted"})
	}
	return found
}

func persistence(conf map[string]string) (found []*SettingError) {
	want := func(setting, value, risk string) {
		if v := conf[setting]; v != value {
			found = append(found, &SettingError{setting, v, risk, fmt.Sprintf("CONFIG SET %s %s, and in redis.conf", setting, value)})
		}
	}
	want("appendonly", "yes", "a crash forgets the tokens since the last snapshot, and they are issued again")
	want("appendfsync", "always", "a crash of the machine forgets tokens that were answered, and they are issued again")
	want("no-appendfsync-on-rewrite", "no", "nothing is synced while the log is rewritten, so a crash of the machine forgets tokens")
	if p := conf["maxmemory-policy"]; strings.HasPrefix(p, "allkeys-") {
		want("maxmemory-policy", "noeviction", "the counter of a lease may be evicted once memory is short (maxmemory is "+conf["maxmemory"]+"), and its tokens start again")
	}
	return found
}

// ask is what was answered, or nothing where the server forbids to ask.
func ask(answer string, err error) (string, error) {
	if forbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("redis: asking for INFO: %w", err)
	}
	return answer, nil
}

// forbidden is how servers answer a command that is not for everybody, or that
// was renamed away.
func forbidden(err error) bool {
	return goredis.HasErrorPrefix(err, "NOPERM") || goredis.HasErrorPrefix(err, "unknown command") || goredis.HasErrorPrefix(err, "ERR unknown command")
}

// fields are the lines of INFO.
func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
