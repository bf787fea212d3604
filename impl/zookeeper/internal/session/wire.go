package session

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// The numbers of the protocol, from zookeeper.jute and ZooDefs.OpCode of
// ZooKeeper 3.4 and later.
const (
	opCreate   int32 = 1
	opDelete   int32 = 2
	opSetData  int32 = 5
	opCheck    int32 = 13
	opMulti    int32 = 14
	opAuth     int32 = 100
	opClose    int32 = -11
	opError    int32 = -1
	xidAuth    int32 = -4
	codeInTurn int32 = -2 // RUNTIMEINCONSISTENCY: undone because another operation of the multi failed
)

// codes are the server's refusals that a caller tells apart.
var codes = map[int32]error{
	-101: zk.ErrNoNode,
	-102: zk.ErrNoAuth,
	-103: zk.ErrBadVersion,
	-110: zk.ErrNodeExists,
	-111: zk.ErrNotEmpty,
	-112: zk.ErrSessionExpired,
	-114: zk.ErrInvalidACL,
	-115: zk.ErrAuthFailed,
	-118: zk.ErrSessionMoved,
}

func codeError(code int32) error {
	if err, ok := codes[code]; ok {
		return err
	}
	return fmt.Errorf("server error %d", code)
}

// encoder appends in the encoding that ZooKeeper calls jute: integers are big
// endian, strings and buffers have their length in front.
type encoder []byte

func (e *encoder) int(v int32)  { *e = binary.BigEndian.AppendUint32(*e, uint32(v)) }
func (e *encoder) long(v int64) { *e = binary.BigEndian.AppendUint64(*e, uint64(v)) }
func (e *encoder) bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	*e = append(*e, b)
}
func (e *encoder) bytes(v []byte) { e.int(int32(len(v))); *e = append(*e, v...) }
func (e *encoder) text(v string)  { e.int(int32(len(v))); *e = append(*e, v...) }

// op appends one operation of a multi.
func (e *encoder) op(op any) error {
	head := func(kind int32) { e.int(kind); e.bool(false); e.int(-1) }
	switch op := op.(type) {
	case *zk.CreateRequest:
		head(opCreate)
		e.text(op.Path)
		e.bytes(op.Data)
		e.int(int32(len(op.Acl)))
		for _, a := range op.Acl {
			e.int(a.Perms)
			e.text(a.Scheme)
			e.text(a.ID)
		}
		e.int(op.Flags)
	case *zk.DeleteRequest:
		head(opDelete)
		e.text(op.Path)
		e.int(op.Version)
	case *zk.SetDataRequest:
		head(opSetData)
		e.text(op.Path)
		e.bytes(op.Data)
		e.int(op.Version)
	case *zk.CheckVersionRequest:
		head(opCheck)
		e.text(op.Path)
		e.int(op.Version)
	default:
		return fmt.Errorf("no operation of a multi: %T", op)
	}
	return nil
}

var errShort = errors.New("the answer is too short")

// decoder reads what encoder writes. After a read past the end all values are
// zero and err says so.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.err = errShort
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) int() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

func (d *decoder) bytes() []byte {
	n := d.int()
	if n < 0 { // a null buffer
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) stat() zk.Stat {
	return zk.Stat{
		Czxid: d.long(), Mzxid: d.long(), Ctime: d.long(), Mtime: d.long(),
		Version: d.int(), Cversion: d.int(), Aversion: d.int(),
		EphemeralOwner: d.long(), DataLength: d.int(), NumChildren: d.int(), Pzxid: d.long(),
	}
}

// results reads the answer to a multi of n operations.
func (d *decoder) results(n int) ([]zk.Stat, error) {
	stats := make([]zk.Stat, 0, n)
	failed, at := error(nil), 0
	for i := 0; ; i++ {
		kind, done := d.int(), d.bool()
		d.int()
		if d.err != nil {
			return nil, d.err
		}
		if done {
			break
		}
		var stat zk.Stat
		switch kind {
		case opCreate:
			d.bytes()
		case opSetData:
			stat = d.stat()
		case opError:
			if code := d.int(); code != 0 && code != codeInTurn && failed == nil {
				failed, at = codeError(code), i
			}
		}
		stats = append(stats, stat)
	}
	switch {
	case failed != nil:
		return nil, &MultiError{Op: at, Err: failed}
	case len(stats) != n:
		return nil, fmt.Errorf("%d answers to %d operations", len(stats), n)
	}
	return stats, d.err
}

// MultiError says that nothing of a multi took effect, because of one operation.
type MultiError struct {
	Op  int // its index
	Err error
}

func (e *MultiError) Error() string { return fmt.Sprintf("operation %d: %v", e.Op, e.Err) }

// Unwrap gives the server's reason, such as [zk.ErrBadVersion].
func (e *MultiError) Unwrap() error { return e.Err }
