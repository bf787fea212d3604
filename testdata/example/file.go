//go:build unix

package mylease

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"
)

// Files is a lease store that keeps one JSON file a directory and a lock beside
// it, and knows nothing of fencepost: any number of processes of one machine
// may use it. Its clock must be the same for all of them, as the boot clock is.
type Files struct {
	dir string
	now func() time.Duration
}

// held is a lease in the file.
type held struct {
	Token   uint64
	Holder  string        // "": nobody
	TTL     time.Duration // the longest of the tenure
	Expires time.Duration
}

// JSON has no other text: it would make one name of several.
var errName = errors.New("a name that is not UTF-8")

// OpenFiles opens the store in dir. rebooted says that the machine was started
// again since, and its clock with it: whoever held a lease holds it for its
// whole TTL.
func OpenFiles(dir string, now func() time.Duration, rebooted bool) (*Files, error) {
	f := &Files{dir: dir, now: now}
	if !rebooted {
		return f, nil
	}
	return f, f.locked(func(all map[string]held) bool {
		for name, l := range all {
			l.Expires = later(f.now(), l.TTL)
			all[name] = l
		}
		return true
	})
}

// Acquire gives resource to holder for ttl, unless somebody else has it.
func (f *Files) Acquire(_ context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error) {
	if !utf8.ValidString(resource) || !utf8.ValidString(holder) {
		return 0, false, errName
	}
	err = f.locked(func(all map[string]held) bool {
		l, now := all[resource], f.now()
		if now >= l.Expires {
			l.Holder = ""
		}
		if l.Holder != "" && l.Holder != holder {
			return false
		}
		if l.Holder == "" {
			l = held{Token: l.Token + 1, Holder: holder}
		}
		l.TTL, l.Expires = max(l.TTL, ttl), max(l.Expires, later(now, ttl))
		all[resource] = l
		token, ok = l.Token, true
		return true
	})
	return token, ok, err
}

// Renew lets holder have resource for ttl from now, if it has it.
func (f *Files) Renew(_ context.Context, resource, holder string, token uint64, ttl time.Duration) (ok bool, err error) {
	err = f.locked(func(all map[string]held) bool {
		l, now := all[resource], f.now()
		ok = l.Holder == holder && l.Token == token && now < l.Expires
		if ok {
			l.TTL, l.Expires = max(l.TTL, ttl), max(l.Expires, later(now, ttl))
		} else if now >= l.Expires {
			l.Holder = "" // written down before it is told
		}
		all[resource] = l
		return true
	})
	return ok, err
}

// Release gives resource back, if holder has it.
func (f *Files) Release(_ context.Context, resource, holder string, token uint64) (ok bool, err error) {
	err = f.locked(func(all map[string]held) bool {
		l, now := all[resource], f.now()
		ok = l.Holder == holder && l.Token == token && now < l.Expires
		if ok || now >= l.Expires {
			l.Holder = ""
		}
		all[resource] = l
		return true
	})
	return ok, err
}

// locked calls do with all that the file holds, which it may change, while no
// other process does. If do says so, the change is on disk when locked returns.
func (f *Files) locked(do func(map[string]held) bool) error {
	lock, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which gives it up
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	all := map[string]held{}
	name := filepath.Join(f.dir, "leases.json")
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !do(all) {
		return nil
	}
	if data, err = json.Marshal(all); err != nil {
		return err
	}
	// Under another name first: a crash half-way leaves the old file. A store
	// that must survive a power cut also syncs the file and the directory.
	if err := os.WriteFile(name+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func later(now, ttl time.Duration) time.Duration {
	if end := now + ttl; end > now {
		return end
	}
	return 1<<63 - 1
}
