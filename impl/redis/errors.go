package redis

import (
	"errors"
	"fmt"
	"net"

	goredis "github.com/redis/go-redis/v9"
)

// ErrNotDone matches errors after which nothing has happened and nothing will:
// the request never left, or the server refused to run it. Any other error that
// is no refusal by a rule leaves the outcome unknown.
var ErrNotDone = errors.New("nothing was done")

// refusals are the first words of what the server answers instead of running a
// script, or at its first write, before which the scripts here change nothing;
// and what to do.
var refusals = []struct{ word, todo string }{
	{"READONLY", "this is a replica: connect to the primary"},
	{"LOADING", "the server is reading its data: try again"},
	{"BUSY", "a script of somebody else's runs for too long: see SCRIPT KILL"},
	{"OOM", "the server is at maxmemory: raise it, or make room"},
	{"MISCONF", "the server cannot write to its disk: see its log"},
	{"NOREPLICAS", "min-replicas-to-write asks for replicas that are not there"},
	{"MASTERDOWN", "this is a replica that has lost its primary: connect to the primary"},
	{"CLUSTERDOWN", "the cluster does not serve this slot: try again"},
	{"TRYAGAIN", "the slot is on its way to another node: try again"},
	{"MOVED", "this is a cluster: use goredis.NewClusterClient"},
	{"ASK", "this is a cluster: use goredis.NewClusterClient"},
	{"CROSSSLOT", "an empty resource, or one that starts with }, has no slot of its own: rename it"},
	{"NOSCRIPT", "the server forgot the script just after it was told: try again"},
	{"NOAUTH", "give the client a password"},
	{"WRONGPASS", "check user and password"},
	{"NOPERM", "the user needs EVAL, EVALSHA, TIME, GET, SET, INCR, HMGET, HSET, DEL and PUBLISH on the keys and channel of the prefix"},
	{"ERR max number of clients", "raise maxclients, or use fewer connections"},
}

// outcome is err of a call that was made, told as what is known about it.
func outcome(op, resource string, err error) error {
	for _, r := range refusals {
		if goredis.HasErrorPrefix(err, r.word) {
			return fmt.Errorf("%s of %q: %w: %w (%s)", op, resource, ErrNotDone, err, r.todo)
		}
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" || errors.Is(err, goredis.ErrPoolTimeout) {
		return notDone(op, resource, err)
	}
	return fmt.Errorf("%s of %q: outcome unknown: %w", op, resource, err)
}

func notDone(op, resource string, err error) error {
	return fmt.Errorf("%s of %q: %w: %w", op, resource, ErrNotDone, err)
}
