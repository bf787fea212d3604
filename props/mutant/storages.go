package mutant

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// WrongStorage is a fenced storage of somebody's own as it is written wrong, to
// be seen convicted by the checks of package storagetest.
type WrongStorage struct {
	Name   string
	Breaks string // what is wrong, in a sentence
	Seen   string // where the like is met
	// Convicted is the check that convicts it. Others may too.
	Convicted string
	Open      func(kit.Env) fence.KV
}

// WrongStorages are the catalogue, each a right one but for one thing.
func WrongStorages() []WrongStorage {
	return []WrongStorage{{
		Name:      "unfenced",
		Breaks:    "The storage takes a token and looks at none.",
		Seen:      "the zombie write of Kleppmann, \"How to do distributed locking\" (2016)",
		Convicted: "rules/lower-token-is-refused",
		Open:      wrongKV(func(t kvRows) fence.KV { return unfencedRows{t} }),
	}, {
		Name:      "guard-per-key",
		Breaks:    "Each key has a highest token of its own: a deposed leader writes what its successor has not written yet.",
		Seen:      "a version column in each row, used as if it fenced the table",
		Convicted: "rules/one-guard-for-all-keys",
		Open:      wrongKV(func(t kvRows) fence.KV { return guardPerKey{t} }),
	}, {
		Name:      "fence-not-remembered",
		Breaks:    "A fence compares its token with the highest and does not raise it.",
		Seen:      "barriers answered by a read-only check of the token",
		Convicted: "rules/fence-bars-lower-tokens",
		Open:      wrongKV(func(t kvRows) fence.KV { return fenceNotRemembered{t} }),
	}, {
		Name:      "strictly-greater",
		Breaks:    "A token must be above the highest: a leader's second write is refused.",
		Seen:      "home-made fencing that takes a token for the number of a write",
		Convicted: "rules/equal-token-lands",
		Open:      wrongKV(func(t kvRows) fence.KV { return strictlyGreater{t} }),
	}, {
		Name:      "token-as-text",
		Breaks:    "Tokens compare as text: 10 is below 9, and from then on the only leader is refused.",
		Seen:      "a token kept in a text column, a header or a key-value store of strings",
		Convicted: "rules/tokens-compare-as-integers",
		Open:      wrongKV(func(t kvRows) fence.KV { return tokenAsText{t} }),
	}, {
		Name:      "token-of-32-bits",
		Breaks:    "Tokens are cut to 32 bits: 1<<32+1 is 1.",
		Seen:      "a cast to a C int, and integer columns of databases that do not check",
		Convicted: "rules/tokens-compare-as-integers",
		Open:      wrongKV(func(t kvRows) fence.KV { return tokenOf32Bits{t} }),
	}, {
		Name:      "token-as-float",
		Breaks:    "Tokens are floating point: from 1<<53 on neighbours are one, and a deposed leader's token equals its successor's.",
		Seen:      "numbers of Lua scripts in Redis, and of JSON in JavaScript",
		Convicted: "rules/tokens-compare-as-integers",
		Open:      wrongKV(func(t kvRows) fence.KV { return tokenAsFloat{t} }),
	}, {
		Name:      "admits-token-zero",
		Breaks:    "Token 0 is admitted while no other was seen: whoever forgets to set one writes.",
		Seen:      "the zero value of a field that a client of an older version does not send",
		Convicted: "rules/token-zero-is-refused",
		Open:      wrongKV(func(t kvRows) fence.KV { return admitsZero{t} }),
	}, {
		Name:      "refused-write-truncates",
		Breaks:    "The write opens its row for writing, which empties it, before it looks at the token: a refused write leaves nothing of the value.",
		Seen:      "os.Create, or a delete and an insert, before the comparison",
		Convicted: "rules/refused-write-changes-nothing",
		Open:      wrongKV(func(t kvRows) fence.KV { return truncatesFirst{t} }),
	}, {
		Name:      "refuses-without-ErrStale",
		Breaks:    "A refusal is an error of its own kind: its sender takes the outcome for unknown, tries again, and leads on.",
		Seen:      "errors of a driver, handed on as they are",
		Convicted: "rules/refusal-matches-ErrStale",
		Open:      wrongKV(func(t kvRows) fence.KV { return ownRefusal{t} }),
	}, {
		Name:      "value-cached",
		Breaks:    "A value once read is remembered, and a later write does not reach it.",
		Seen:      "a cache in front of a table, filled by reads",
		Convicted: "rules/read-gives-what-landed-last",
		Open:      wrongKV(func(t kvRows) fence.KV { return &cachedReads{kvRows: t, cache: map[string]string{}} }),
	}, {
		Name:      "highest-forgotten-at-restart",
		Breaks:    "The highest token is kept in memory, and the data is not: after a restart a deposed leader's write lands.",
		Seen:      "fencing proxies in front of a store that itself knows no tokens",
		Convicted: "restarts/restart-keeps-the-highest-token",
		Open:      highestForgotten,
	}, {
		Name:      "fence-not-durable",
		Breaks:    "The highest token is saved with each write, and not with a fence: after a restart the barrier is gone.",
		Seen:      "a token column beside the data, with nowhere to keep one that came without data",
		Convicted: "restarts/restart-keeps-a-fence",
		Open:      fenceNotDurable,
	}, {
		Name:      "checks-then-writes",
		Breaks:    "The token is compared in one query and the write done in the next: a successor acts between them.",
		Seen:      "SELECT and UPDATE without a transaction, GET and SET without a script",
		Convicted: "concurrency/stale-writes-against-a-fence",
		Open:      wrongKV(func(t kvRows) fence.KV { return checksThenWrites{t} }),
	}, {
		Name:      "rewrites-without-a-lock",
		Breaks:    "Each write reads the whole file, changes its key, and puts the file back: of two at once one is lost, and was acknowledged.",
		Seen:      "a JSON file or a blob as a database, a ConfigMap updated without its resource version",
		Convicted: "concurrency/one-term-many-keys",
		Open:      rewritesUnlocked,
	}}
}

// kvTable is a database in memory: what survives a crash.
type kvTable struct {
	mu      sync.Mutex
	highest lease.Token
	values  map[string]string
	guards  map[string]lease.Token // by key, of guardPerKey
}

// kvRows are a right storage on a [kvTable]; each wrong one does one thing otherwise.
type kvRows struct{ *kvTable }

// wrongKV opens what wrap makes of kvRows that survive a crash.
func wrongKV(wrap func(kvRows) fence.KV) func(kit.Env) fence.KV {
	return func(e kit.Env) fence.KV { return wrap(kvRows{keptTable(e)}) }
}

func keptTable(e kit.Env) *kvTable {
	return kit.Durable(e, "table", func() *kvTable {
		return &kvTable{values: map[string]string{}, guards: map[string]lease.Token{}}
	})
}

func (r kvRows) Write(_ context.Context, token lease.Token, key, value string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token == 0 || token < r.highest {
		return fence.ErrStale
	}
	r.highest, r.values[key] = token, value
	return nil
}

func (r kvRows) Fence(_ context.Context, token lease.Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token == 0 || token < r.highest {
		return fence.ErrStale
	}
	r.highest = token
	return nil
}

func (r kvRows) Read(_ context.Context, key string) (value string, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok = r.values[key]
	return value, ok, nil
}

// admit is Write and Fence by another comparison than the right one.
func (r kvRows) admit(ok func(highest lease.Token) bool, e fence.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Token == 0 || !ok(r.highest) {
		return fence.ErrStale
	}
	if r.highest = e.Token; !e.Fence {
		r.values[e.Key] = e.Value
	}
	return nil
}

type unfencedRows struct{ kvRows }

func (u unfencedRows) Write(_ context.Context, _ lease.Token, key, value string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.values[key] = value
	return nil
}

type guardPerKey struct{ kvRows }

func (g guardPerKey) Write(_ context.Context, token lease.Token, key, value string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	// g.highest is that of fences.
	if token == 0 || token < g.highest || token < g.guards[key] {
		return fence.ErrStale
	}
	g.guards[key], g.values[key] = token, value
	return nil
}

type fenceNotRemembered struct{ kvRows }

func (f fenceNotRemembered) Fence(_ context.Context, token lease.Token) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token == 0 || token < f.highest {
		return fence.ErrStale
	}
	return nil
}

type strictlyGreater struct{ kvRows }

func (s strictlyGreater) Write(_ context.Context, token lease.Token, key, value string) error {
	return s.admit(func(highest lease.Token) bool { return token > highest }, fence.Entry{Token: token, Key: key, Value: value})
}

type tokenAsText struct{ kvRows }

func (t tokenAsText) compare(token lease.Token) func(lease.Token) bool {
	return func(highest lease.Token) bool { return highest == 0 || decimalToken(token) >= decimalToken(highest) }
}

func (t tokenAsText) Write(_ context.Context, token lease.Token, key, value string) error {
	return t.admit(t.compare(token), fence.Entry{Token: token, Key: key, Value: value})
}

func (t tokenAsText) Fence(_ context.Context, token lease.Token) error {
	return t.admit(t.compare(token), fence.Entry{Token: token, Fence: true})
}

func decimalToken(t lease.Token) string { return strconv.FormatUint(uint64(t), 10) }

type tokenOf32Bits struct{ kvRows }

func (t tokenOf32Bits) Write(ctx context.Context, token lease.Token, key, value string) error {
	return t.kvRows.Write(ctx, lease.Token(uint32(token)), key, value)
}

func (t tokenOf32Bits) Fence(ctx context.Context, token lease.Token) error {
	return t.kvRows.Fence(ctx, lease.Token(uint32(token)))
}

type tokenAsFloat struct{ kvRows }

func (t tokenAsFloat) Write(_ context.Context, token lease.Token, key, value string) error {
	return t.admit(func(highest lease.Token) bool { return float64(token) >= float64(highest) }, fence.Entry{Token: token, Key: key, Value: value})
}

func (t tokenAsFloat) Fence(_ context.Context, token lease.Token) error {
	return t.admit(func(highest lease.Token) bool { return float64(token) >= float64(highest) }, fence.Entry{Token: token, Fence: true})
}

type admitsZero struct{ kvRows }

func (a admitsZero) Write(_ context.Context, token lease.Token, key, value string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token < a.highest {
		return fence.ErrStale
	}
	a.highest, a.values[key] = token, value
	return nil
}

type truncatesFirst struct{ kvRows }

func (w truncatesFirst) Write(ctx context.Context, token lease.Token, key, value string) error {
	w.mu.Lock()
	w.values[key] = ""
	w.mu.Unlock()
	return w.kvRows.Write(ctx, token, key, value)
}

type ownRefusal struct{ kvRows }

var errNoRows = errors.New("0 rows affected")

func (o ownRefusal) Write(ctx context.Context, token lease.Token, key, value string) error {
	if o.kvRows.Write(ctx, token, key, value) != nil {
		return errNoRows
	}
	return nil
}

type cachedReads struct {
	kvRows
	mu    sync.Mutex
	cache map[string]string
}

func (c *cachedReads) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if value, ok = c.cache[key]; ok {
		return value, true, nil
	}
	if value, ok, err = c.kvRows.Read(ctx, key); ok && err == nil {
		c.cache[key] = value
	}
	return value, ok, err
}

// highestForgotten has values that survive and a highest token that does not.
func highestForgotten(e kit.Env) fence.KV {
	disk := keptTable(e)
	return kvRows{&kvTable{values: disk.values}}
}

// fenceNotDurable saves the highest token with each write.
func fenceNotDurable(e kit.Env) fence.KV {
	disk := keptTable(e)
	return savesWithWrites{kvRows{&kvTable{values: disk.values, highest: disk.highest}}, disk}
}

type savesWithWrites struct {
	kvRows
	disk *kvTable
}

func (s savesWithWrites) Write(ctx context.Context, token lease.Token, key, value string) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	err := s.kvRows.Write(ctx, token, key, value)
	if err == nil {
		s.disk.highest = token
	}
	return err
}

// checksThenWrites does what a client of a database does that uses no
// transaction. Each query looks at its context.
type checksThenWrites struct{ kvRows }

func (c checksThenWrites) check(ctx context.Context, token lease.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if token == 0 || token < c.highest {
		return fence.ErrStale
	}
	return nil
}

func (c checksThenWrites) Write(ctx context.Context, token lease.Token, key, value string) error {
	if err := c.check(ctx, token); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.highest, c.values[key] = token, value
	return nil
}

// rewrites is a file that is read and put back as a whole. That each of the two
// is one step is the file system's doing.
type rewrites struct {
	file *atomic.Pointer[fence.Durable]
}

func rewritesUnlocked(e kit.Env) fence.KV {
	return rewrites{kit.Durable(e, "file", func() *atomic.Pointer[fence.Durable] {
		file := new(atomic.Pointer[fence.Durable])
		file.Store(&fence.Durable{})
		return file
	})}
}

func (r rewrites) change(ctx context.Context, e fence.Entry) error {
	content := *r.file.Load()
	content.Values = maps.Clone(content.Values)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := content.Apply(e); err != nil {
		return err
	}
	r.file.Store(&content)
	return nil
}

func (r rewrites) Write(ctx context.Context, token lease.Token, key, value string) error {
	return r.change(ctx, fence.Entry{Token: token, Key: key, Value: value})
}

func (r rewrites) Fence(ctx context.Context, token lease.Token) error {
	return r.change(ctx, fence.Entry{Token: token, Fence: true})
}

func (r rewrites) Read(_ context.Context, key string) (value string, ok bool, err error) {
	value, ok = r.file.Load().Values[key]
	return value, ok, nil
}
