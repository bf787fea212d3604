package fence_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

const (
	resource = "shard-1"
	ttl      = 5 * time.Second
	delay    = time.Second
	before   = 32 // the tokens issued before every history
)

// scene is a lease, a storage under it, and the parties of one history.
type scene struct {
	t       *testing.T
	lease   *lockedLease
	kv      fence.KV
	restart func() // of the storage; it comes back from what is durable
	seq     uint64
}

// columns are the kinds of storage compared, in the order of the table.
var columns = [...]struct {
	name string
	open func(*scene)
}{
	{"highest seen", func(s *scene) {
		var log entries
		s.kv = fence.Restore(fence.Durable{}, &log)
		s.restart = func() {
			d, err := log.replay()
			s.must(err)
			s.kv = fence.Restore(d, &log)
		}
	}},
	{"compare-and-swap", func(s *scene) {
		// What it goes by is the lease, so the lease restarts.
		s.kv = fence.NewCompareAndSwap(s.lease, resource)
		s.restart = func() { s.lease.record = lease.Restore(s.lease.record.Durable, s.lease.now) }
	}},
	{"unfenced", func(s *scene) {
		s.kv = new(fence.Unfenced)
		s.restart = func() {}
	}},
}

// grant gives the lease to node as a new incarnation.
func (s *scene) grant(node string) lease.Token {
	s.t.Helper()
	s.seq++
	rep := s.lease.do(lease.Request{Op: lease.OpAcquire, Holder: lease.Holder{Node: node, Seq: s.seq}, TTL: ttl})
	if rep.Code != lease.CodeGranted {
		s.t.Fatalf("history: acquire by %s answered %v", node, rep.Code)
	}
	return rep.Token
}

// lapse lets the tenure and its lock delay pass, unobserved.
func (s *scene) lapse() { s.lease.now += ttl + delay }

func (s *scene) release() {
	s.t.Helper()
	r := s.lease.record
	rep := s.lease.do(lease.Request{Op: lease.OpRelease, Holder: r.Holder, Token: r.Token})
	if rep.Code != lease.CodeReleased {
		s.t.Fatalf("history: release answered %v", rep.Code)
	}
}

func (s *scene) write(token lease.Token, key, value string) error {
	return s.kv.Write(s.t.Context(), token, key, value)
}

// must fails the test where a step of the history itself was refused.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("history: %v", err)
	}
}

// verdict is what ought to become of a last write.
type verdict int

const (
	right  verdict = iota // the holder's: to refuse it is harm
	wrong                 // to land is harm
	either                // nobody has begun to act under a later token: no harm
)

type outcome string

const (
	lands   outcome = "lands"
	refused outcome = "refused"
)

// rows are the table of the package comment. Each play makes the history around
// last, the write that is judged, and returns its answer.
var rows = []struct {
	name  string
	ought verdict
	cells [3]outcome
	play  func(s *scene, last func(lease.Token) error) error
}{
	{"a, for the second time", right, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.must(s.write(a, "x", "first"))
			return last(a)
		}},
	{"b, for the first time", right, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.must(s.write(a, "x", "of a"))
			s.lapse()
			return last(s.grant("b"))
		}},
	{"a, lapsed; nobody took over", either, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			return last(a)
		}},
	{"a, lapsed, somebody was told; nobody took over", either, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.lease.do(lease.Request{Op: lease.OpGet})
			if st := s.lease.record.Status; st != lease.Lapsed {
				s.t.Fatalf("history: the lease is %v", st)
			}
			return last(a)
		}},
	{"a, released; nobody took over", either, [3]outcome{lands, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.release()
			return last(a)
		}},
	{"a, lease deleted; nobody took over", either, [3]outcome{lands, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lease.record = s.lease.record.Delete()
			return last(a)
		}},
	{"a, after b wrote", wrong, [3]outcome{refused, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.must(s.write(s.grant("b"), "x", "of b"))
			return last(a)
		}},
	{"a, after b wrote another key", wrong, [3]outcome{refused, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.must(s.write(s.grant("b"), "y", "of b"))
			return last(a)
		}},
	{"a, after b fenced", wrong, [3]outcome{refused, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.must(s.kv.Fence(s.t.Context(), s.grant("b")))
			return last(a)
		}},
	{"a, after b fenced and the storage restarted", wrong, [3]outcome{refused, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.must(s.kv.Fence(s.t.Context(), s.grant("b")))
			s.restart()
			return last(a)
		}},
	{"a, after b was granted, before b fenced and read", either, [3]outcome{lands, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			b := s.grant("b")
			err := last(a)
			s.must(s.kv.Fence(s.t.Context(), b))
			// No harm, since b decides by what it reads, and it reads this.
			v, _, rerr := s.kv.Read(s.t.Context(), "x")
			s.must(rerr)
			if (v == "last") != (err == nil) {
				s.t.Errorf("b read %q after the write of a answered %v", v, err)
			}
			return err
		}},
	{"a, after b was granted and read, before it fenced", wrong, [3]outcome{lands, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.grant("b")
			_, _, err := s.kv.Read(s.t.Context(), "x")
			s.must(err) // what b decides by, and a is about to change it
			return last(a)
		}},
	{"a, lease deleted, after b was granted and fenced", wrong, [3]outcome{refused, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lease.record = s.lease.record.Delete()
			s.must(s.kv.Fence(s.t.Context(), s.grant("b")))
			return last(a)
		}},
	{"a, under 33, after a itself got 34 and fenced", wrong, [3]outcome{refused, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lapse()
			s.must(s.kv.Fence(s.t.Context(), s.grant("a")))
			return last(a)
		}},
	{"a, under 34, which it read from the lease", wrong, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			s.grant("a")
			s.lapse()
			s.must(s.kv.Fence(s.t.Context(), s.grant("b")))
			return last(s.lease.do(lease.Request{Op: lease.OpGet}).Token)
		}},
	{"anybody, under 99, which was never granted", wrong, [3]outcome{lands, refused, lands},
		func(s *scene, last func(lease.Token) error) error {
			s.grant("a")
			return last(99)
		}},
	{"a, after somebody wrote under 99", right, [3]outcome{refused, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			_ = s.write(99, "x", "of nobody") // compare-and-swap refuses it
			return last(a)
		}},
	{"a late copy of a's first, after a's second", wrong, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.must(last(a))
			s.must(s.write(a, "x", "second"))
			return last(a)
		}},
	{"b, under 1: the store lost its counter", right, [3]outcome{refused, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			s.must(s.write(s.grant("a"), "x", "of a"))
			s.lease.record = lease.Record{}
			b := s.grant("b")
			if b != 1 {
				s.t.Fatalf("history: b got token %d", b)
			}
			return last(b)
		}},
	{"a, after b got 33 too: the store lost its counter", wrong, [3]outcome{lands, lands, lands},
		func(s *scene, last func(lease.Token) error) error {
			a := s.grant("a")
			s.lease.record = lease.Record{Durable: lease.Durable{Token: before}}
			s.must(s.kv.Fence(s.t.Context(), s.grant("b")))
			return last(a)
		}},
}

func TestEveryCellOfTheTable(t *testing.T) {
	for _, row := range rows {
		for i, column := range columns {
			t.Run(row.name+"/"+column.name, func(t *testing.T) {
				s := &scene{t: t, lease: new(lockedLease)}
				s.lease.record.Token = before
				column.open(s)
				err := row.play(s, func(token lease.Token) error { return s.write(token, "x", "last") })
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Fatalf("the refusal does not match ErrStale: %v", err)
				}
				// What the storage holds decides, and its answer must agree.
				got := refused
				if v, _, rerr := s.kv.Read(t.Context(), "x"); rerr != nil {
					t.Fatal(rerr)
				} else if v == "last" {
					got = lands
				}
				if (got == lands) != (err == nil) {
					t.Errorf("the write %s, but its answer is %v", got, err)
				}
				if got != row.cells[i] {
					t.Errorf("the write %s, the table says that it %s", got, row.cells[i])
				}
			})
		}
	}
}

func TestPackageCommentHasTheTable(t *testing.T) {
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := renderTable(); !strings.Contains(string(src), want) {
		t.Errorf("doc.go does not have the table of this test. It is\n%s", want)
	}
}

func renderTable() string {
	var b strings.Builder
	line := func(name string, cells [3]string) {
		s := fmt.Sprintf("//\t%-51s%-14s%-18s%s", name, cells[0], cells[1], cells[2])
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	line("last write, and what went before", [3]string{columns[0].name, columns[1].name, columns[2].name})
	for _, row := range rows {
		var cells [3]string
		for i, c := range row.cells {
			cells[i] = string(c)
			if row.ought == right && c == refused || row.ought == wrong && c == lands {
				cells[i] += " !"
			}
		}
		line(row.name, cells)
	}
	return "//\n" + b.String() + "//\n" // nothing else stands in it
}
