package lifelike

import "fencepost/linearizability"

// storageKeys is how many keys a storage has.
const storageKeys = 3

// storage is the protected resource of one lease: it refuses what comes under
// a token below the highest it has seen.
type storage struct {
	highest uint64
	values  [storageKeys]int64 // 0: never written
}

// serveStorage carries out an operation on a storage.
func (w *world) serveStorage(o *operation) answer {
	s := &w.storages[o.lease]
	if o.f == "read" {
		v := linearizability.Value{}
		if n := s.values[o.k]; n != 0 {
			v = linearizability.Int(n)
		}
		return answer{typ: linearizability.OK, fields: []linearizability.Field{{Name: "v", Value: v}}}
	}
	if o.token < s.highest && !(o.f == "write" && w.plant("stale-lands")) {
		if w.chance(0.7) {
			return refusal("stale", number("highest", s.highest))
		}
		return refusal("stale")
	}
	s.highest = max(s.highest, o.token)
	if o.f == "write" && !w.plant("write-lost") {
		s.values[o.k] = o.v
	}
	return ok
}

// restartStorage loses nothing: what a storage has acknowledged is durable.
func (w *world) restartStorage(i int) {
	if s := &w.storages[i]; s.highest > w.first && w.plant("highest-forgotten") {
		s.highest = 0
	}
}
