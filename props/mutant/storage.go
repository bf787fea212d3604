package mutant

import (
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

func storageBugs() []Mutant {
	zombie := model.SetOf(model.StorageSafety, model.Barrier)
	return []Mutant{{
		Name:    "unfenced",
		Breaks:  "The storage looks at no token.",
		Seen:    "the zombie write of Kleppmann, \"How to do distributed locking\" (2016)",
		May:     zombie,
		Actions: 14,
		Subject: sim.Subject{Storage: unfenced{}},
		Explore: short(2, 0),
	}, {
		Name:    "compares-wrong-way",
		Breaks:  "The comparison is the wrong way round: tokens above the highest are refused, those below land.",
		Seen:    "home-made fencing in a WHERE clause",
		May:     zombie | model.SetOf(model.Availability),
		Actions: 12,
		Subject: sim.Subject{Storage: comparesWrongWay{}},
		Explore: short(2, 0),
	}, {
		Name:    "refuses-equal-token",
		Breaks:  "A token must be above the highest, not only as high: a leader's second write is refused.",
		Seen:    "home-made fencing that takes a token for the number of a write",
		May:     model.SetOf(model.Availability, model.Linearizability),
		Actions: 9,
		Subject: sim.Subject{Storage: refusesEqualToken{}},
		// To be refused costs a term, never all of them: no calm without raw
		// requests shows it.
		Explore: func(o *explore.Options) { o.Judged = model.SetOf(model.Lockstep) },
	}, {
		Name:    "forgets-highest-at-restart",
		Breaks:  "The highest token is kept in memory: after a restart of the storage a zombie's write lands.",
		Seen:    "fencing proxies and caches in front of a store that itself knows no tokens",
		May:     zombie,
		Actions: 16,
		Subject: sim.Subject{Storage: forgetsHighestAtRestart{}},
		Explore: short(2, explore.StorageCrash),
	}, {
		Name:    "highest-collected",
		Breaks:  "The highest token is collected as garbage while the lease is free.",
		Seen:    "highest tokens kept under a TTL or beside the lease, and gone with it",
		May:     zombie,
		Actions: 20,
		Subject: sim.Subject{Storage: highestCollected{}, Layout: sim.Layout{Unsound: sim.Irrelevance}},
		Explore: func(o *explore.Options) { o.TTL, o.Drift, o.Faults = 1, 1, explore.Writes|explore.Deletion },
	}, {
		Name:    "highest-per-key",
		Breaks:  "Each key remembers a highest token of its own: a zombie's write to a key that the new leader has not written lands.",
		Seen:    "a version column in each row, used as if it fenced the table",
		May:     model.SetOf(model.StorageSafety),
		Actions: 14,
		Subject: sim.Subject{Storage: highestPerKey{}, Layout: sim.Layout{StorageN: means(sim.MeansToken, sim.MeansToken, sim.MeansToken, sim.MeansToken)}},
		Explore: func(o *explore.Options) { o.TTL, o.Keys = 2, 2 },
	}, {
		Name:    "fence-unrecorded",
		Breaks:  "A fence request is acknowledged but its token is not remembered.",
		Seen:    "barriers answered by a read-only check of the token",
		May:     zombie,
		Actions: 16,
		Subject: sim.Subject{Storage: fenceUnrecorded{}},
		Explore: func(o *explore.Options) { o.TTL, o.Barrier = 2, true },
	}, {
		Name:    "lost-write-at-restart",
		Breaks:  "The last write that was acknowledged is lost at a restart.",
		Seen:    "Redis with appendfsync everysec, or any database that acknowledges before it syncs",
		May:     model.SetOf(model.Durability),
		Actions: 10,
		Subject: sim.Subject{Storage: lostWriteAtRestart{}, Layout: sim.Layout{StorageN: means(sim.MeansValue, sim.MeansValue, sim.MeansValue, sim.MeansValue)}},
		Explore: with(explore.StorageCrash),
	}, {
		Name:    "writes-before-checking",
		Breaks:  "A write is applied before its token is checked: it is refused and has landed all the same.",
		Seen:    "home-made fencing that writes and checks in two statements without a transaction",
		May:     model.SetOf(model.Durability),
		Actions: 18,
		Subject: sim.Subject{Storage: writesBeforeChecking{}},
		Explore: short(2, 0),
	}}
}

type unfenced struct{ sim.Storage }

// Handle admits everything.
func (unfenced) Handle(s *sim.StorageState, _ *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	return s.Apply(req, true)
}

type comparesWrongWay struct{ sim.Storage }

// Handle admits what is not above the highest.
func (comparesWrongWay) Handle(s *sim.StorageState, _ *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	ok := s.Highest == 0 || req.Token <= s.Highest
	if ok && req.Op != model.OpRead {
		s.Highest = max(s.Highest, req.Token)
	}
	return s.Apply(req, ok)
}

type refusesEqualToken struct{ sim.Storage }

// Handle admits only what is above the highest.
func (r refusesEqualToken) Handle(s *sim.StorageState, current *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	if req.Op != model.OpRead && req.Token == s.Highest {
		return s.Apply(req, false)
	}
	return r.Storage.Handle(s, current, req)
}

type forgetsHighestAtRestart struct{ sim.Storage }

// Restart has only the values on disk.
func (forgetsHighestAtRestart) Restart(s *sim.StorageState) { s.Guard = fence.Guard{} }

type highestCollected struct{ sim.Storage }

// Handle forgets the highest token together with the lease.
func (r highestCollected) Handle(s *sim.StorageState, current *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	if current.Status == lease.Free {
		s.Guard = fence.Guard{}
	}
	return r.Storage.Handle(s, current, req)
}

// highestPerKey has the highest token of each key in N.
type highestPerKey struct{ sim.Storage }

// Handle looks at the tokens of one key only. A fence is for all of them.
func (r highestPerKey) Handle(s *sim.StorageState, current *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	if req.Op == model.OpFence {
		for k, highest := range s.Scratch.N {
			s.Scratch.N[k] = max(highest, int64(req.Token))
		}
	}
	s.Highest = lease.Token(s.Scratch.N[req.Key])
	code, value := r.Storage.Handle(s, current, req)
	s.Scratch.N[req.Key] = int64(s.Highest)
	return code, value
}

type fenceUnrecorded struct{ sim.Storage }

// Handle leaves the highest token as it was.
func (r fenceUnrecorded) Handle(s *sim.StorageState, current *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	before := s.Guard
	code, value := r.Storage.Handle(s, current, req)
	if req.Op == model.OpFence {
		s.Guard = before
	}
	return code, value
}

// lostWriteAtRestart has in N what is on disk under each key: all but the last
// write.
type lostWriteAtRestart struct{ sim.Storage }

// Handle acknowledges before it syncs.
func (r lostWriteAtRestart) Handle(s *sim.StorageState, current *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	before := s.Values
	code, value := r.Storage.Handle(s, current, req)
	if code == model.CodeLanded {
		s.Scratch.N = before
	}
	return code, value
}

// Restart finds the last write missing.
func (lostWriteAtRestart) Restart(s *sim.StorageState) {
	s.Values = s.Scratch.N
}

type writesBeforeChecking struct{ sim.Storage }

// Handle has the value in place before it looks at the token.
func (r writesBeforeChecking) Handle(s *sim.StorageState, current *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	if req.Op == model.OpWrite {
		s.Values[req.Key] = req.Value
	}
	return r.Storage.Handle(s, current, req)
}
