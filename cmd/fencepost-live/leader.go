package main

import (
	"encoding/json"
	"fmt"
	"time"

	"fencepost/impl/lease"
)

// leaderCmd says who leads.
type leaderCmd struct {
	Backend  string `required:"" placeholder:"URL" help:"Where the lease lives, as for elect."`
	Resource string `required:"" help:"What is leased."`
	Watch    bool   `help:"Go on, with a line for each change."`
	JSON     bool   `help:"One JSON object a line."`
}

// seen is what --json prints.
type seen struct {
	Resource  string `json:"resource"`
	Holder    string `json:"holder"` // "": nobody
	Token     uint64 `json:"token"`  // the last one issued, where known
	Remaining string `json:"remaining,omitempty"`
}

// Run is called by kong.
func (c *leaderCmd) Run(e *env) error {
	store, closeStore, err := open(e.ctx, c.Backend)
	if err != nil {
		return err
	}
	defer closeStore()
	if !c.Watch {
		o, err := store.Get(e.ctx, c.Resource)
		if err != nil {
			return err
		}
		c.print(e, o)
		if o.Holder.IsZero() {
			return &exitError{1}
		}
		return nil
	}
	for o, err := range lease.Leaders(e.ctx, store, lease.LeadersConfig{Resource: c.Resource, Clock: e.clk}) {
		if err != nil {
			e.log.Warn("could not ask", "err", err)
			continue
		}
		c.print(e, o)
	}
	return nil
}

func (c *leaderCmd) print(e *env, o lease.Observation) {
	switch {
	case c.JSON:
		s := seen{Resource: c.Resource, Holder: o.Holder.String(), Token: uint64(o.Token)}
		if o.Remaining > 0 {
			s.Remaining = o.Remaining.Round(time.Millisecond).String()
		}
		json.NewEncoder(e.out).Encode(s)
	case o.Holder.IsZero():
		fmt.Fprintf(e.out, "nobody leads %s\n", c.Resource)
	default:
		fmt.Fprintf(e.out, "%s leads %s under token %d, for another %v unless it is renewed\n", o.Holder, c.Resource, o.Token, o.Remaining.Round(time.Millisecond))
	}
}
