package livetest

import (
	"context"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// storageTask is a check of a storage by itself.
type storageTask struct {
	name string
	f    func(*storage)
}

var storageTasks = []storageTask{
	{"rules/a-write-lands", (*storage).writeLands},
	{"rules/stale-is-refused", (*storage).staleIsRefused},
	{"rules/a-fence-bars", (*storage).aFenceBars},
	{"rules/a-refused-write-leaves-nothing", (*storage).refusedLeavesNothing},
	{"rules/token-zero", (*storage).tokenZero},
	{"lease/a-released-token-is-refused", (*storage).releasedIsRefused},
	{"lease/only-what-was-granted-lands", (*storage).onlyGranted},
	{"race/a-fence-in-the-middle", (*storage).race},
	{"restart/keeps-the-highest-token", (*storage).restartKeepsToken},
	{"restart/keeps-what-landed", (*storage).restartKeepsData},
}

// StorageChecks are all checks of the storage that open makes: each time the
// same data, with another connection.
func StorageChecks(open func(Env) fence.KV, o StorageOptions) []kit.Check {
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	s := &storage{w: newWorld(open), o: o}
	if o.Lease != nil {
		s.leases = newWorld(o.Lease)
	}
	var checks []kit.Check
	for _, t := range storageTasks {
		checks = append(checks, kit.Check{Name: t.name, Run: func() kit.Outcome {
			defer s.close()
			return s.try(func() { t.f(s) })
		}})
	}
	return checks
}

// close ends the connections of a check. What is left of its tenure is given
// back, so that the next need not wait for its end.
func (s *storage) close() {
	if s.leases != nil {
		if !s.holder.IsZero() {
			plain{s.leases.process(0), s.w.clk}.Release(context.Background(), s.o.Resource, s.holder, s.highest)
			s.holder = lease.Holder{}
		}
		s.leases.close()
	}
	s.w.close()
}

func (s *storage) writeLands() {
	key, other := s.key(), s.key()
	s.finds(0, key, "", readGivesLast)
	token := s.grant()
	s.lands(s.write(0, token, key, "one"), higherTokenLands)
	s.finds(1, key, "one", readGivesLast)
	s.lands(s.write(1, token, key, "two"), equalTokenLands)
	s.lands(s.write(0, token, other, "three"), equalTokenLands)
	s.finds(0, key, "two", readGivesLast)
	s.finds(1, other, "three", readGivesLast)
	next := s.grant()
	s.lands(s.write(1, next, key, "four"), higherTokenLands)
	s.finds(0, key, "four", readGivesLast)
	s.finds(0, other, "three", readGivesLast)
}

// bar has the storage see the token of a new leader.
func (s *storage) bar(token lease.Token) {
	if s.o.NoFence {
		s.lands(s.write(1, token, s.key(), "bar"), higherTokenLands)
		return
	}
	s.lands(s.fence(1, token), higherTokenLands)
}

func (s *storage) staleIsRefused() {
	key, other := s.key(), s.key()
	old := s.grant()
	s.lands(s.write(0, old, key, "old"), higherTokenLands)
	token := s.grant()
	s.lands(s.write(1, token, key, "new"), higherTokenLands)
	for connection := range 3 {
		s.refused(s.write(connection, old, key, "late"), lowerTokenIsRefused)
		s.refused(s.write(connection, old, other, "late"), oneGuardForAllKeys)
		if !s.o.NoFence {
			s.refused(s.fence(connection, old), fenceIsRefused)
		}
	}
	s.finds(0, key, "new", refusedWriteNothing)
	s.finds(0, other, "", refusedWriteNothing)
	s.lands(s.write(0, token, key, "newer"), equalTokenLands)
}

func (s *storage) aFenceBars() {
	if s.o.NoFence {
		panic(skipped("the storage has no barrier: see StorageOptions.NoFence"))
	}
	key := s.key()
	old := s.grant()
	s.lands(s.write(0, old, key, "old"), higherTokenLands)
	token := s.grant()
	s.lands(s.fence(1, token), higherTokenLands)
	s.lands(s.fence(1, token), equalTokenLands) // a retry
	s.finds(0, key, "old", fenceWritesNothing)
	s.refused(s.write(0, old, key, "late"), fenceBars)
	s.refused(s.write(2, old, s.key(), "late"), fenceBars)
	s.refused(s.fence(0, old), fenceIsRefused)
	s.finds(1, key, "old", refusedWriteNothing)
	s.lands(s.write(1, token, key, "new"), equalTokenLands)
	s.finds(0, key, "new", readGivesLast)
}

func (s *storage) refusedLeavesNothing() {
	if s.o.NoRead {
		panic(skipped("nobody can read what is left: see StorageOptions.NoRead"))
	}
	key := s.key()
	old := s.grant()
	token := s.grant()
	s.bar(token)
	s.refused(s.write(0, old, key, "late"), lowerTokenIsRefused)
	s.finds(0, key, "", refusedWriteNothing)
	s.finds(1, key, "", refusedWriteNothing)
}

func (s *storage) tokenZero() {
	key := s.key()
	s.bar(s.grant())
	s.refused(s.write(0, 0, key, "zero"), tokenZeroIsRefused)
	if !s.o.NoFence {
		s.refused(s.fence(0, 0), tokenZeroIsRefused)
	}
	s.finds(1, key, "", tokenZeroIsRefused)
}

func (s *storage) needLease() {
	if s.leases == nil {
		panic(skipped("the storage looks at no lease: see StorageOptions.Lease"))
	}
}

func (s *storage) releasedIsRefused() {
	s.needLease()
	key := s.key()
	token := s.grant()
	s.lands(s.write(0, token, key, "held"), higherTokenLands)
	s.release()
	s.refused(s.write(1, token, key, "released"), afterAReleaseNothing)
	s.finds(0, key, "held", refusedWriteNothing)
	next := s.grant()
	s.refused(s.write(0, token, key, "superseded"), onlyTheCarriedToken)
	s.lands(s.write(0, next, key, "next"), higherTokenLands)
	s.finds(0, key, "next", readGivesLast)
}

func (s *storage) onlyGranted() {
	s.needLease()
	key := s.key()
	token := s.grant()
	s.refused(s.write(0, token+1, key, "never granted"), onlyTheCarriedToken)
	s.finds(1, key, "", refusedWriteNothing)
	s.lands(s.write(1, token, key, "granted"), higherTokenLands)
}

// restart restarts the server, unless that is not tested.
func (s *storage) restart() {
	switch {
	case s.o.Volatile:
		panic(skipped("the storage forgets everything with its process: see StorageOptions.Volatile"))
	case s.o.Restart == nil && s.o.NoRestart != "":
		panic(skipped("restarts are not tested: " + s.o.NoRestart))
	case s.o.Restart == nil:
		panic(unproved("nobody knows what a restart of the server loses: set StorageOptions.Restart, or say in NoRestart why not"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), restartLimit)
	defer cancel()
	if err := s.o.Restart(ctx); err != nil {
		panic(unproved("the server did not come back: " + err.Error()))
	}
	s.tell("the server is killed, and comes back", "done")
	// Connections to what is gone need not survive it.
	s.w.close()
	if s.leases != nil {
		s.leases.close()
	}
}

func (s *storage) restartKeepsToken() {
	key := s.key()
	old := s.grant()
	s.lands(s.write(0, old, key, "old"), higherTokenLands)
	token := s.grant()
	s.bar(token)
	s.restart()
	s.refused(s.write(0, old, key, "late"), restartKeepsToken)
	s.finds(0, key, "old", restartKeepsData)
	if s.leases != nil {
		token = s.grant() // the tenure may have run out meanwhile
	}
	s.lands(s.write(1, token, key, "new"), higherTokenLands)
}

func (s *storage) restartKeepsData() {
	keys := []string{s.key(), s.key(), s.key()}
	token := s.grant()
	for _, key := range keys {
		s.lands(s.write(0, token, key, "of "+key), higherTokenLands)
	}
	s.restart()
	for _, key := range keys {
		s.finds(1, key, "of "+key, restartKeepsData)
	}
}
