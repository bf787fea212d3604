package sim

import "fencepost/model"

// Counts are what a run, or many, reached. A property that never saw a
// takeover has checked nothing.
type Counts struct {
	Runs      int64
	Effective [kinds]int64 // actions that did something
	Noop      [kinds]int64 // actions that made no sense where they stood

	Terms          int64 // beginnings of belief
	Takeovers      int64 // grants to another node than the one before
	StaleRefused   int64 // writes and fences that a storage refused
	Landed         int64
	RenewalsLost   int64 // renewals, or their answers, that the network lost
	Survived       int64 // terms that went on after one
	Extended       int64 // renewals that gave a term a later deadline
	BarrierFailed  int64 // terms that ended before the barrier was acknowledged
	Fencing        int64 // terms that waited for the barrier
	Copies         int64 // copies that landed
	ClientRestarts int64
	StoreRestarts  int64
	Storage        int64 // restarts of the storage
	Calms          int64
	Waived         int64 // runs in which a waived invariant broke
	// Impersonated is how many raw requests the store handled that named a client's
	// live incarnation, and its token where it had one: no candidate keeps its
	// promises where somebody else acts in its name.
	Impersonated int64

	Answers  [model.OpRead + 1][model.CodeValue + 1]int64 // of store and storage
	StepDown [model.ReasonDown + 1]int64                  // why terms ended

	last      model.Node
	lostRenew uint16
}

func (c *Counts) note(k Kind, effective bool) {
	if effective {
		c.Effective[k]++
	} else {
		c.Noop[k]++
	}
}

func (c *Counts) see(e *model.Event) {
	bit := uint16(1) << e.Node
	switch e.Kind {
	case model.KindHandle:
		c.Answers[e.Op][e.Code]++
		if e.Copy {
			c.Copies++
		}
		switch {
		case e.Code == model.CodeStale:
			c.StaleRefused++
		case e.Code == model.CodeLanded:
			c.Landed++
		case e.Code == model.CodeGranted && e.Op == model.OpAcquire:
			if c.last != 0 && c.last != e.Owner.Node {
				c.Takeovers++
			}
			c.last = e.Owner.Node
		}
	case model.KindLose:
		if e.Op == model.OpRenew && !e.Copy {
			c.RenewalsLost++
			c.lostRenew |= bit | 1<<e.Peer
		}
	case model.KindExtend:
		c.Extended++
		if c.lostRenew&bit != 0 {
			c.Survived++
			c.lostRenew &^= bit
		}
	case model.KindLead:
		c.Terms++
		c.lostRenew &^= bit
	case model.KindFencing:
		c.Fencing++
	case model.KindStepDown:
		c.StepDown[e.Reason]++
	case model.KindCalm:
		c.Calms++
	case model.KindRestart:
		switch e.Node {
		case StoreNode:
			c.StoreRestarts++
		case StorageNode:
			c.Storage++
		default:
			c.ClientRestarts++
		}
	}
}

// Add adds what another run reached.
func (c *Counts) Add(o *Counts) {
	c.Runs += o.Runs
	for k := range kinds {
		c.Effective[k] += o.Effective[k]
		c.Noop[k] += o.Noop[k]
	}
	for op := range o.Answers {
		for code := range o.Answers[op] {
			c.Answers[op][code] += o.Answers[op][code]
		}
	}
	for r := range o.StepDown {
		c.StepDown[r] += o.StepDown[r]
	}
	for _, f := range []struct{ to, from *int64 }{
		{&c.Terms, &o.Terms}, {&c.Takeovers, &o.Takeovers}, {&c.StaleRefused, &o.StaleRefused},
		{&c.Landed, &o.Landed}, {&c.RenewalsLost, &o.RenewalsLost}, {&c.Survived, &o.Survived}, {&c.Extended, &o.Extended}, {&c.BarrierFailed, &o.BarrierFailed},
		{&c.Fencing, &o.Fencing}, {&c.Copies, &o.Copies}, {&c.ClientRestarts, &o.ClientRestarts}, {&c.StoreRestarts, &o.StoreRestarts},
		{&c.Storage, &o.Storage}, {&c.Calms, &o.Calms}, {&c.Waived, &o.Waived}, {&c.Impersonated, &o.Impersonated},
	} {
		*f.to += *f.from
	}
}

// Actions is how many actions were applied and how many of them did something.
func (c *Counts) Actions() (effective, all int64) {
	for k := range kinds {
		effective += c.Effective[k]
		all += c.Effective[k] + c.Noop[k]
	}
	return effective, all
}
