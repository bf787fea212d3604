package linearizability

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// short writes a history as one operation a line:
//
//	call-return f field=value ... -> type field=value ...
//
// Each operation is a process of its own. A line without a return never returned.
// The first line may be meta.
func short(t testing.TB, text string) History {
	t.Helper()
	type event struct {
		time, process int64
		typ, f        string
		fields        []string
	}
	var meta string
	var events []event
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "{") {
			meta = `{"meta":` + line + "}\n"
			continue
		}
		called, answer, _ := strings.Cut(line, "->")
		words, ends := strings.Fields(called), strings.Fields(answer)
		from, to, _ := strings.Cut(words[0], "-")
		process := int64(100 + i)
		at, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, event{at, process, "invoke", words[1], words[2:]})
		if len(ends) > 0 {
			if at, err = strconv.ParseInt(to, 10, 64); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			events = append(events, event{at, process, ends[0], words[1], ends[1:]})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.time, b.time) })
	var b strings.Builder
	b.WriteString(meta)
	for i, e := range events {
		fmt.Fprintf(&b, `{"index":%d,"time":%d,"process":%d,"type":%q,"f":%q`, i, e.time, e.process, e.typ, e.f)
		for _, f := range e.fields {
			name, value, _ := strings.Cut(f, "=")
			if !json.Valid([]byte(value)) {
				value = strconv.Quote(value)
			}
			fmt.Fprintf(&b, `,%q:%s`, name, value)
		}
		b.WriteString("}\n")
	}
	return mustRead(t, b.String())
}

// shown is a case of one check: the smallest history that shows the anomaly, and
// the nearest one that does not.
type shown struct {
	check string
	blame Party
	lines string // of the evidence
	bad   string
	good  string
}

var shownChecks = []shown{
	{checkOverlap, BlameClient, "4 7", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-14 lead key=k owner=a token=1 -> ok
		11-12 acquire key=k owner=b ttl=10 -> ok token=2
		12-20 lead key=k owner=b token=2 -> ok`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-10 lead key=k owner=a token=1 -> ok
		11-12 acquire key=k owner=b ttl=10 -> ok token=2
		12-20 lead key=k owner=b token=2 -> ok`},
	{checkOverlap, BlameStore, "4 7", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-9 lead key=k owner=a token=1 -> ok
		6-7 acquire key=k owner=b ttl=10 -> ok token=2
		7-16 lead key=k owner=b token=2 -> ok`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-6 lead key=k owner=a token=1 -> ok
		6-7 release key=k owner=a token=1 -> ok
		7-8 acquire key=k owner=b ttl=10 -> ok token=2
		8-16 lead key=k owner=b token=2 -> ok`},
	// Of two slots, two may lead; one slot no two.
	{checkOverlap, BlameStore, "4 7", `
		{"version":1,"slots":2,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
		1-9 lead key=k owner=a token=1 slot=0 -> ok
		2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=0
		3-9 lead key=k owner=b token=2 slot=0 -> ok`, `
		{"version":1,"slots":2,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
		1-9 lead key=k owner=a token=1 slot=0 -> ok
		2-3 acquire key=k owner=b ttl=10 -> ok token=2 slot=1
		3-9 lead key=k owner=b token=2 slot=1 -> ok`},
	{checkOverstayed, BlameClient, "4 5 7", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-14 lead key=k owner=a token=1 -> ok
		3-4 renew key=k owner=a token=1 ttl=10 -> ok`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-13 lead key=k owner=a token=1 -> ok
		3-4 renew key=k owner=a token=1 ttl=10 -> ok`},
	// An unknown renewal may have been answered to the owner.
	{checkOverstayed, BlameClient, "4 6 8", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-14 lead key=k owner=a token=1 -> ok
		3- renew key=k owner=a token=1 ttl=10
		4-5 renew key=k owner=a token=1 ttl=2 -> ok`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-13 lead key=k owner=a token=1 -> ok
		3- renew key=k owner=a token=1 ttl=10
		4-5 renew key=k owner=a token=1 ttl=2 -> ok`},
	{checkUngranted, BlameClient, "4", `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 lead key=k owner=b token=1 -> ok`, `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 lead key=k owner=a token=1 -> ok`},
	// An unknown acquire of another lease grants nothing here.
	{checkUngranted, BlameClient, "3", `
		{"version":1,"first":1}
		0- acquire key=other owner=b ttl=10
		2-3 lead key=k owner=b token=1 -> ok`, `
		{"version":1,"first":1}
		0- acquire key=k owner=b ttl=10
		2-3 lead key=k owner=b token=1 -> ok`},
	{checkContinuity, BlameClient, "4 6", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 lead key=k owner=a token=1 -> ok
		4-5 lead key=k owner=a token=1 -> ok`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		0-1 acquire key=other owner=a ttl=10 -> ok token=1
		2-3 lead key=k owner=a token=1 -> ok
		4-5 lead key=other owner=a token=1 -> ok`},
	{checkTakenEarly, BlameStore, "3 5", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-9 acquire key=k owner=b ttl=10 -> ok token=2`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-10 acquire key=k owner=b ttl=10 -> ok token=2`},
	{checkTakenEarly, BlameStore, "5 7", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		5-6 renew key=k owner=a token=1 ttl=10 -> ok
		12-14 acquire key=k owner=b ttl=10 -> ok token=2`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		5-6 renew key=k owner=a token=1 ttl=10 -> ok
		12-15 acquire key=k owner=b ttl=10 -> ok token=2`},
	// An unknown release may have freed it; one of somebody else's did not.
	{checkTakenEarly, BlameStore, "3 6", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2- release key=k owner=c token=1
		3-4 acquire key=k owner=b ttl=10 -> ok token=2`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2- release key=k owner=a token=1
		3-4 acquire key=k owner=b ttl=10 -> ok token=2`},
	// A renewal that draws a token counts its own TTL, even one with unknown outcome.
	{checkTakenEarly, BlameStore, "3 6", `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=30 -> ok token=1 slot=0
		2- renew key=k owner=a from=1 ttl=9 slot=0
		3-4 acquire key=k owner=b ttl=10 -> ok token=3 slot=0`, `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=30 -> ok token=1 slot=0
		2- renew key=k owner=a from=1 ttl=2 slot=0
		3-4 acquire key=k owner=b ttl=10 -> ok token=3 slot=0`},
	{checkLapsedEarly, BlameStore, "3 5", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		8-9 renew key=k owner=a token=1 ttl=10 -> fail error=lapsed`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		8-10 renew key=k owner=a token=1 ttl=10 -> fail error=lapsed`},
	{checkLapsedEarly, BlameStore, "3 5", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		3-5 release key=k owner=a token=1 -> fail error=lost`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		3-5 release key=k owner=a token=1 -> fail error=lost
		4- release key=k owner=a token=1`},
	// An unknown renewal may have drawn another token.
	{checkLapsedEarly, BlameStore, "3 6", `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
		2- renew key=k owner=c from=1 ttl=10 slot=0
		3-5 release key=k owner=a token=1 slot=0 -> fail error=lost`, `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 slot=0
		2- renew key=k owner=a from=1 ttl=10 slot=0
		3-5 release key=k owner=a token=1 slot=0 -> fail error=lost`},
	{checkTakenEarly, BlameStore, "3 8", `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=30 -> ok token=1 slot=0
		2- renew key=k owner=a from=1 ttl=30 slot=0
		3-4 renew key=k owner=c from=2 ttl=2 slot=0 -> ok token=3
		8-9 acquire key=k owner=b ttl=10 -> ok token=4 slot=0`, `
		{"version":1,"slots":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=30 -> ok token=1 slot=0
		2- renew key=k owner=a from=1 ttl=30 slot=0
		3-4 renew key=k owner=a from=2 ttl=2 slot=0 -> ok token=3
		8-9 acquire key=k owner=b ttl=10 -> ok token=4 slot=0`},
	{checkOrphan, BlameStore, "3 5", `
		{"version":1,"late":2}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		13-14 get key=k -> ok owner=a token=1`, `
		{"version":1,"late":2}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		12-14 get key=k -> ok owner=a token=1`},
	{checkOrphan, BlameStore, "3 5", `
		{"version":1,"late":2}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		13-14 acquire key=k owner=b ttl=10 -> fail error=held`, `
		{"version":1,"late":2}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		9- renew key=k owner=a token=1 ttl=10
		13-14 acquire key=k owner=b ttl=10 -> fail error=held`},
	{checkTwoOwners, BlameStore, "3 5", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=k owner=b ttl=10 -> ok token=1`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=other owner=b ttl=10 -> ok token=1`},
	{checkNotRising, BlameStore, "3 5", `
		{"version":1,"tokens":"rising"}
		0-1 acquire key=k owner=a ttl=10 -> ok token=7
		20-21 acquire key=k owner=b ttl=10 -> ok token=6`, `
		{"version":1,"tokens":"rising"}
		0-3 acquire key=k owner=a ttl=1 -> ok token=7
		2-4 acquire key=k owner=b ttl=10 -> ok token=6`},
	{checkNotRising, BlameStore, "3 5", `
		{"version":1,"tokens":"rising","slots":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=7 slot=0 already=false
		20-21 acquire key=k owner=a ttl=10 -> ok token=7 slot=0 already=false`, `
		{"version":1,"tokens":"rising","slots":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=7 slot=0 already=false
		20-21 acquire key=k owner=a ttl=10 -> ok token=7 slot=0 already=true`},
	{checkGap, BlameStore, "3 6", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2- acquire key=k owner=c ttl=10
		20-21 acquire key=k owner=b ttl=10 -> ok token=4`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2- acquire key=k owner=c ttl=10
		20-21 acquire key=k owner=b ttl=10 -> ok token=3`},
	{checkGap, BlameStore, "3", `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=2`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=2`},
	// One unknown acquire takes one token, of its own lease.
	{checkGap, BlameStore, "4 8", `
		{"version":1}
		0- acquire key=other owner=c ttl=10
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 release key=k owner=a token=1 -> ok
		20-21 acquire key=k owner=b ttl=10 -> ok token=3`, `
		{"version":1}
		0- acquire key=k owner=c ttl=10
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 release key=k owner=a token=1 -> ok
		20-21 acquire key=k owner=b ttl=10 -> ok token=3`},
	{checkGrantedBack, BlameStore, "5 7", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 release key=k owner=a token=1 -> ok
		4-5 acquire key=k owner=a ttl=10 -> ok token=1`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-5 release key=k owner=a token=1 -> ok
		4-6 acquire key=k owner=a ttl=10 -> ok token=1`},
	{checkAlready, BlameStore, "3", `
		{"version":1,"tokens":"rising","slots":1}
		4-5 acquire key=k owner=a ttl=10 -> ok token=1 slot=0 already=true`, `
		{"version":1,"tokens":"rising","slots":1}
		0- acquire key=k owner=a ttl=10
		4-5 acquire key=k owner=a ttl=10 -> ok token=1 slot=0 already=true`},
	{checkSlot, BlameStore, "3", `
		{"version":1,"tokens":"rising","slots":2}
		4-5 acquire key=k owner=a ttl=10 -> ok token=1 slot=2`, `
		{"version":1,"tokens":"rising","slots":2}
		4-5 acquire key=k owner=a ttl=10 -> ok token=1 slot=1`},
	{checkStale, BlameStorage, "3 5", `
		{"version":1}
		0-1 fence key=s owner=b token=2 -> ok
		2-3 write key=s owner=a token=1 k=x v=1 -> ok`, `
		{"version":1}
		0-1 fence key=other owner=b token=2 -> ok
		2-3 write key=s owner=a token=1 k=x v=1 -> ok`},
	// Each slot is fenced by itself.
	{checkStale, BlameStorage, "3 5", `
		{"version":1,"slots":2,"tokens":"rising"}
		0-1 write key=s owner=b token=2 slot=0 k=x v=2 -> ok
		2-3 write key=s owner=a token=1 slot=0 k=x v=1 -> ok`, `
		{"version":1,"slots":2,"tokens":"rising"}
		0-1 write key=s owner=b token=2 slot=1 k=x v=2 -> ok
		2-3 write key=s owner=a token=1 slot=0 k=x v=1 -> ok`},
	{checkBarrier, BlameClient, "6 8", `
		{"version":1,"barrier":true}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=k owner=b ttl=10 -> ok token=2
		22-29 lead key=k owner=b token=2 -> ok
		23-24 write key=s owner=a token=1 k=x v=1 -> ok`, `
		{"version":1,"barrier":true}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=k owner=b ttl=10 -> ok token=2
		22-29 lead key=k owner=b token=2 -> ok
		21-24 write key=s owner=a token=1 k=x v=1 -> ok`},
	// The leader of another lease, whatever its token, is no concern of this one's.
	{checkBarrier, BlameClient, "6 8", `
		{"version":1,"barrier":true}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		20-21 acquire key=k owner=b ttl=10 -> ok token=2
		22-29 lead key=k owner=b token=2 -> ok
		23-24 write key=s owner=a token=1 k=x v=1 -> ok`, `
		{"version":1,"barrier":true}
		0-1 acquire key=k owner=a ttl=90 -> ok token=1
		20-21 acquire key=other owner=b ttl=10 -> ok token=2
		22-29 lead key=other owner=b token=2 -> ok
		23-24 write key=s owner=a token=1 k=x v=1 -> ok`},
	{checkWrite, BlameClient, "5", `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 write key=s owner=b token=1 k=x v=1 -> ok`, `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-2 acquire key=k owner=b ttl=10 -> info
		2-3 write key=s owner=b token=2 k=x v=1 -> ok`},
	// A token on record to be another's is no unknown acquire's.
	{checkWrite, BlameClient, "7", `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-2 acquire key=k owner=b ttl=10 -> info
		3-4 write key=s owner=b token=1 k=x v=1 -> ok`, `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		1-2 acquire key=other owner=b ttl=10 -> info
		3-4 write key=s owner=b token=1 k=x v=1 -> ok`},
	{checkPhantom, BlameStorage, "3 5", `
		{"version":1}
		0-1 write key=s owner=a token=1 k=x v=1 id=w1 -> fail error=not-carried
		2-3 landed -> ok records=[{"key":"s","owner":"a","token":1,"id":"w1"}]`, `
		{"version":1}
		0-1 write key=s owner=a token=1 k=x v=1 id=w1 -> info
		2-3 landed -> ok records=[{"key":"s","owner":"a","token":1,"id":"w1"}]`},
	{checkPhantom, BlameStorage, "3", `
		{"version":1}
		2-3 landed -> ok records=[{"key":"s","owner":"a","token":1,"id":"w1"}]`, `
		{"version":1}
		2-3 landed -> ok records=[]`},
	{checkStale, BlameStorage, "3", `
		{"version":1}
		2-3 landed -> ok records=[{"key":"s","token":2},{"key":"s","token":1}]`, `
		{"version":1}
		2-3 landed -> ok records=[{"key":"s","token":2},{"key":"t","token":1}]`},
	{checkTwoOwners, BlameClient, "3 5", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 landed -> ok records=[{"key":"k","owner":"b","token":1}]`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 landed -> ok records=[{"key":"k","owner":"a","token":1}]`},
	{checkLost, BlameStorage, "3 5", `
		{"version":1}
		0-1 write key=s owner=a token=1 k=x v=1 id=w1 -> ok
		2-3 landed -> ok records=[]`, `
		{"version":1}
		0-3 write key=s owner=a token=1 k=x v=1 id=w1 -> ok
		2-4 landed -> ok records=[]`},
	{checkLost, BlameStorage, "5 7", `
		{"version":1}
		0-1 write key=s owner=a token=1 k=x v=1 -> ok
		2-3 write key=s owner=a token=1 k=x v=2 -> ok
		4-5 read key=s k=x -> ok v=1`, `
		{"version":1}
		0-1 write key=s owner=a token=1 k=x v=1 -> ok
		2-3 write key=s owner=a token=1 k=x v=2 -> ok
		2-3 write key=s owner=a token=1 k=x v=1 -> ok
		4-5 read key=s k=x -> ok v=1`},
	{checkLost, BlameStorage, "3 5", `
		{"version":1}
		0-1 write key=s owner=a token=1 k=x v=1 -> ok
		4-5 read key=s k=x -> ok v=null`, `
		{"version":1}
		0-1 write key=s owner=a token=1 k=y v=1 -> ok
		4-5 read key=s k=x -> ok v=null`},
	{checkRenamed, BlameRecorder, "2 3", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 owner=b`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1 owner=a`},
	{checkRetoken, BlameRecorder, "4 5", `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 renew key=k owner=a token=1 ttl=10 -> ok token=2`, `
		{"version":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 renew key=k owner=a token=1 ttl=10 -> ok token=1`},
	{checkRetoken, BlameRecorder, "2 3 4 5", `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 renew key=k owner=a token=5 ttl=10 -> ok`, `
		{"version":1,"first":1}
		0-1 acquire key=k owner=a ttl=10 -> ok token=1
		2-3 renew key=k owner=a token=1 ttl=10 -> ok`},
}

// TestEachCheckTellsBadFromGood: both ways, with whom to blame and the lines
// that prove it.
func TestEachCheckTellsBadFromGood(t *testing.T) {
	tested := make(map[string]bool)
	for i, c := range shownChecks {
		tested[c.check] = true
		t.Run(fmt.Sprintf("%02d %s", i, c.check), func(t *testing.T) {
			v := mustCheck(t, short(t, c.bad), Options{Model: Model{Name: ModelFencepost}})
			at := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Check == c.check })
			if at < 0 {
				t.Fatalf("want it found: %s", v)
			}
			f := v.Findings[at]
			if f.Blame != c.blame || f.Violates != (c.blame != BlameRecorder) || f.Invariant != checkNamed(c.check).Invariant {
				t.Errorf("want the %s blamed: %s", c.blame, f)
			}
			if !slices.Contains(checkNamed(c.check).Blame, f.Blame) {
				t.Errorf("the table does not say that it may blame the %s", f.Blame)
			}
			if got := strings.Trim(fmt.Sprint(f.Lines), "[]"); got != c.lines || len(f.Shows) != len(f.Lines) {
				t.Errorf("want lines %s as evidence, with their text: %s %q", c.lines, f, f.Shows)
			}
			if v.Result == Holds {
				t.Errorf("such a history cannot hold: %s", v)
			}
			v = mustCheck(t, short(t, c.good), Options{Model: Model{Name: ModelFencepost}})
			if slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Check == c.check }) {
				t.Errorf("nothing of the kind is wrong here: %s", v)
			}
		})
	}
	for _, c := range Checks() {
		if !tested[c.Name] {
			t.Errorf("no case shows %s", c.Name)
		}
		if c.Meaning == "" || c.Source == "" || len(c.Blame) == 0 {
			t.Errorf("%s is not explained", c.Name)
		}
	}
}

// TestARecordingThatContradictsItselfIsUnknown: it shows nothing of the service,
// good or bad.
func TestARecordingThatContradictsItselfIsUnknown(t *testing.T) {
	h := short(t, `0-1 acquire key=k owner=a ttl=10 -> ok token=1 owner=b`)
	v := mustCheck(t, h, Options{Model: Model{Name: ModelLease}})
	if v.Result != Unknown || !strings.Contains(v.Reason, "owner-misrecorded") {
		t.Errorf("want unknown: %s", v)
	}
}

// TestWithinTheErrorOfTheStampsNothingIsViolated: an overlap or a stay of up to
// twice the error is told, and no more.
func TestWithinTheErrorOfTheStampsNothingIsViolated(t *testing.T) {
	const text = `
		{"version":1,"eps":2}
		0-1 acquire key=k owner=a ttl=100 -> ok token=1
		1-%d lead key=k owner=a token=1 -> ok
		96-100 acquire key=k owner=b ttl=100 -> ok token=2
		100-150 lead key=k owner=b token=2 -> ok`
	for end, want := range map[int]bool{104: false, 105: true} {
		v := mustCheck(t, short(t, fmt.Sprintf(text, end)), Options{Model: Model{Name: ModelFencepost}})
		for _, check := range []string{checkOverlap, checkOverstayed} {
			at := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Check == check })
			if at < 0 || v.Findings[at].Violates != want {
				t.Errorf("a belief until %d: want %s, violating: %v: %s", end, check, want, v)
			}
		}
	}
}

// TestHarmlessFindingsDoNotHideOthers: their number is bounded, each kind by
// itself.
func TestHarmlessFindingsDoNotHideOthers(t *testing.T) {
	var b strings.Builder
	b.WriteString("{\"version\":1,\"eps\":2,\"tokens\":\"rising\"}\n")
	end := 3 // of the belief before, within the error of the next
	for i := range 3 * maxFindings {
		if i == 3*maxFindings-1 {
			end += 50
		}
		fmt.Fprintf(&b, "%d-%d lead key=k owner=o%d token=%d -> ok\n", 1000*i, 1000*(i+1)+end, i, i+1)
	}
	fmt.Fprintf(&b, "%d-%d lead key=k owner=x token=999 -> ok\n", 3000*maxFindings, 3000*maxFindings+500)
	v := mustCheck(t, short(t, b.String()), Options{Model: Model{Name: ModelFencepost}})
	harmless, violating := 0, 0
	for _, f := range v.Findings {
		switch {
		case f.Check != checkOverlap:
		case f.Violates:
			violating++
		default:
			harmless++
		}
	}
	if harmless != maxFindings || violating != 1 {
		t.Errorf("%d harmless overlaps and %d others, want %d and 1", harmless, violating, maxFindings)
	}
}

// TestManySoundTenuresHaveNoFindings: each renewal, write and read is judged, and
// nothing is wrong.
func TestManySoundTenuresHaveNoFindings(t *testing.T) {
	if beliefs, found := manyFacts(6000).judge(); len(found) > 0 || len(beliefs) != 1000 {
		t.Errorf("%d beliefs, want 1000; found %v", len(beliefs), found)
	}
}

// manyFacts are those of leaders that follow each other under one lease, each
// with a belief, a write, a read and a release.
func manyFacts(n int) *facts {
	meta := DefaultMeta()
	meta.Barrier, meta.Late, meta.First = true, 0, 1
	x := &facts{meta: &meta}
	at := int64(0)
	add := func(f fact) {
		at += 2
		f.span = span{Op: Op{Call: int(at), Return: int(at) + 1, Type: OK}, call: at, ret: at + 1}
		f.key, f.from, f.to, f.sent, f.slot = "k", at, at+1, true, noSlot
		x.all = append(x.all, f)
	}
	for i := range n / 6 {
		owner, token := strconv.Itoa(i), uint64(i+1)
		add(fact{kind: factAcquire, owner: owner, token: token, hasToken: true, ttl: 100})
		add(fact{kind: factLead, owner: owner, token: token, hasToken: true})
		add(fact{kind: factRenew, owner: owner, token: token, hasToken: true, ttl: 100})
		add(fact{kind: factWrite, owner: owner, token: token, hasToken: true, number: token})
		add(fact{kind: factRead, number: token})
		add(fact{kind: factRelease, owner: owner, token: token, hasToken: true})
	}
	return x
}

// BenchmarkChecks shows that the checks take nearly linear time.
func BenchmarkChecks(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := manyFacts(n)
			b.ReportAllocs()
			for b.Loop() {
				x.judge()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/op/fact")
		})
	}
}
