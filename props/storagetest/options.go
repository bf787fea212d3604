package storagetest

import (
	"context"
	"fmt"
	"math"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Options are what a fenced storage promises where correct ones differ. The
// zero Options are the strictest, and those of fence.Storage with a journal:
// the highest token that was seen decides, and nothing is forgotten at a
// restart.
type Options struct {
	// Volatile says that the storage forgets its tokens with its process. That
	// is harmless only where its data goes with them, which is what is then
	// checked instead of restarts.
	Volatile bool
	// NoRead says that the storage cannot be read. What a refused write leaves
	// behind, and what races do, is then hardly checked.
	NoRead bool
	// NoFence says that the storage has no barrier: its Fence is not called,
	// and a successor's first write bars its predecessor. (Whoever reads before
	// that may decide by what the predecessor is about to overwrite.)
	NoFence bool
	// MaxToken is the largest token that the storage can keep, if it is less
	// than [DefaultMaxToken]: 1<<31-1 for a column of 32 bits. At least 1000.
	// Higher ones must be refused, or kept all the same.
	MaxToken lease.Token
	// Carry makes the rule compare-and-swap: a write lands exactly while the
	// lease carries its token. Carry makes the lease that kv looks at carry
	// token, granted anew, before anybody uses it, and returns once that is in
	// force; with 0 the lease is released. Tokens come in order from 1, each one
	// more than the last. Carry is called while others write. Nil: the highest
	// token seen decides.
	Carry func(ctx context.Context, kv fence.KV, token lease.Token) error
	// Calls is about how many calls of the storage the quick mode makes, and
	// the long mode a hundred times as many. Default 20,000: lower it for a
	// storage whose calls take long.
	Calls int
}

// DefaultMaxToken is [Options].MaxToken where that is zero: what a signed
// column of 64 bits can hold.
const DefaultMaxToken lease.Token = math.MaxInt64

// Validate returns a *[kit.OptionsError] for the first field that makes no
// sense, or nil.
func (o Options) Validate() error {
	switch {
	case o.MaxToken != 0 && o.MaxToken < 1000:
		return &kit.OptionsError{Field: "MaxToken", Reason: fmt.Sprintf("%d is less than 1000: a lease that changes hands now and then runs out of tokens", o.MaxToken)}
	case o.MaxToken > DefaultMaxToken:
		return &kit.OptionsError{Field: "MaxToken", Reason: fmt.Sprintf("%d is more than %d, which is what any storage is asked to keep; leave it 0", o.MaxToken, DefaultMaxToken)}
	case o.Calls < 0:
		return &kit.OptionsError{Field: "Calls", Reason: fmt.Sprintf("%d is negative", o.Calls)}
	case o.NoFence && o.NoRead:
		return &kit.OptionsError{Field: "NoRead", Reason: "a storage with neither Fence nor Read shows nothing but its refusals; give it one of the two"}
	}
	return nil
}

// max is the largest token that must be kept.
func (o Options) max() uint64 {
	if o.MaxToken == 0 {
		return uint64(DefaultMaxToken)
	}
	return uint64(o.MaxToken)
}

// budget is how many calls the given part, of 100, of the checks may make.
func (o Options) budget(e kit.Effort, part int) int {
	return kit.Options{Calls: o.Calls}.Budget(e, part)
}

// For is o with what kv is known to lack.
func (o Options) For(kv fence.KV) Options {
	if f, ok := kv.(*funcs); ok {
		o.NoRead = o.NoRead || f.f.Read == nil
		o.NoFence = o.NoFence || f.f.Fence == nil
	}
	return o
}
