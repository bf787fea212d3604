package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
)

// The names of the nodes: of a lease's record below the root, of the tenure
// below the record, of what keeps it below the tenure.
const (
	recordPrefix = "lease-"
	tenurePrefix = "tenure-"
	pulsePrefix  = "pulse-"
)

// record is the path of a resource's record. A resource may be any text; a node
// may neither be named "." nor contain a slash.
func (s *Store) record(resource string) string {
	return s.opts.Root + "/" + recordPrefix + url.PathEscape(resource)
}

func encodeRecord(tenure string, holder lease.Holder) []byte {
	return []byte(tenure[strings.LastIndexByte(tenure, '/')+1:] + "\n" + holder.String())
}

func decodeRecord(path string, data []byte) (tenure string, holder lease.Holder, err error) {
	name, text, _ := strings.Cut(string(data), "\n")
	if !strings.HasPrefix(name, tenurePrefix) || strings.Contains(name, "/") {
		return "", holder, fmt.Errorf("node %s is no record of a lease: %q", path, data)
	}
	holder, err = lease.ParseHolder(text)
	return path + "/" + name, holder, err
}

// sight is how a lease stood at one moment.
type sight struct {
	exists  bool
	version int32 // of the record
	set     int64 // the zxid of the last change of the record
	holder  lease.Holder
	path    string // of the latest tenure's node; none where somebody has removed it
	token   lease.Token
	ended   int32    // the version of that node: 0 until the tenure is released
	pulses  []string // below it
}

// held reports whether the tenure runs. What is left below a released one keeps
// nothing.
func (s sight) held() bool { return s.path != "" && s.ended == 0 && len(s.pulses) > 0 }

// own refuses whoever does not hold the lease.
func (s sight) own(key tenureKey) error {
	mine := s.path != "" && s.holder == key.holder && s.token == key.token
	switch {
	case mine && s.held():
		return nil
	case mine && s.ended == 0:
		return &lease.LapsedError{Resource: key.resource, Holder: key.holder, Token: key.token}
	}
	lost := &lease.LostError{Resource: key.resource, Holder: key.holder, Token: key.token, Latest: s.token}
	if s.held() {
		lost.Current = s.holder
	}
	return lost
}

// lasting is the pulse with the longest timeout.
func (s sight) lasting() string {
	return slices.MaxFunc(s.pulses, func(a, b string) int { return int(pulseTimeout(a) - pulseTimeout(b)) })
}

func pulseTimeout(name string) time.Duration {
	ms, _, _ := strings.Cut(strings.TrimPrefix(name, pulsePrefix), "-")
	n, _ := strconv.ParseInt(ms, 10, 32)
	return time.Duration(n) * time.Millisecond
}

func (s sight) deletePulses() (ops []any) {
	for _, p := range s.pulses {
		ops = append(ops, &zk.DeleteRequest{Path: s.path + "/" + p, Version: -1})
	}
	return ops
}

// look sees how the lease stands: the latest tenure's node is there for as long
// as it is the latest, so what is below it is of that tenure.
func (s *Store) look(ctx context.Context, resource string) (sight, error) {
	path := s.record(resource)
	// A follower may be behind; what it answers after a sync is no older than the call.
	if err := s.conn.sync(ctx, path); err != nil {
		return sight{}, err
	}
	for missed := int64(0); ; {
		record, err := s.conn.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return sight{}, nil
		} else if err != nil {
			return sight{}, err
		}
		seen := sight{exists: true, version: record.stat.Version, set: record.stat.Mzxid}
		tenure, holder, err := decodeRecord(path, record.data)
		if err != nil {
			return sight{}, err
		}
		below, err := s.conn.children(ctx, tenure)
		switch {
		case err == nil:
			seen.path, seen.holder = tenure, holder
			seen.token, seen.ended, seen.pulses = lease.Token(below.stat.Czxid), below.stat.Version, below.names
			return seen, nil
		case !errors.Is(err, zk.ErrNoNode):
			return sight{}, err
		case missed == record.stat.Mzxid:
			return seen, nil // no successor has removed it: somebody else has
		}
		missed = record.stat.Mzxid
	}
}
