package linearizability_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/linearizability"
)

// TestCorpusReduces: of every history in the corpus that is violated, a part is
// left that is violated in the same way, be it by a finding alone.
func TestCorpusReduces(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(ownHistories, "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	reduced := 0
	for line := range strings.Lines(string(manifest)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(cells[0], "violated-") {
			continue
		}
		t.Run(cells[0], func(t *testing.T) {
			h, err := linearizability.ReadFile(filepath.Join(ownHistories, cells[0]))
			if err != nil {
				t.Fatal(err)
			}
			m, err := linearizability.ParseModel(cells[1])
			if err != nil {
				t.Fatal(err)
			}
			o := linearizability.Options{Model: m}
			was, err := linearizability.Check(t.Context(), h, o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := linearizability.Reduce(t.Context(), h, o)
			if err != nil {
				t.Fatal(err)
			}
			is, err := linearizability.Check(t.Context(), got, o)
			if err != nil || is.Result != linearizability.Violated || is.Linearizable() != was.Linearizable() {
				got.WriteJSON(t.Output())
				t.Errorf("was\n%v\nis\n%v (%v)", was, is, err)
			}
			if a, b := len(got.Ops()), len(h.Ops()); a > b || a > 5 {
				got.WriteJSON(t.Output())
				t.Errorf("%d of %d operations are left", a, b)
			}
			lines := make(map[int]bool)
			for _, e := range h.Events {
				lines[e.Line] = true
			}
			for _, e := range got.Events {
				if !lines[e.Line] {
					t.Errorf("line %d is none of the original", e.Line)
				}
			}
		})
		reduced++
	}
	if reduced < 30 {
		t.Errorf("%d violated histories in the corpus, want at least 30", reduced)
	}
}

func TestReduceRefusesWhatIsNotViolated(t *testing.T) {
	h, err := linearizability.ReadFile(filepath.Join(ownHistories, "holds-frozen-client-fenced.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	o := linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}}
	if _, err := linearizability.Reduce(t.Context(), h, o); !errors.Is(err, linearizability.ErrNotViolated) {
		t.Errorf("a history that holds: %v", err)
	}
	// What too little makes unknown is not violated either.
	o.AtLeast.Writes = 1000
	if _, err := linearizability.Reduce(t.Context(), h, o); !errors.Is(err, linearizability.ErrNotViolated) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("a history in which too little happened: %v", err)
	}
	h.Events = slices.Clone(h.Events)
	h.Events[0].Process = -7
	var syntax *linearizability.SyntaxError
	if _, err := linearizability.Reduce(t.Context(), h, o); !errors.As(err, &syntax) {
		t.Errorf("no history: %v", err)
	}
}

func ExampleReduce() {
	// An owner that renewed its lease for long, and then another was granted it
	// a second after a renewal for two.
	h := linearizability.History{Name: "run.jsonl", Meta: linearizability.DefaultMeta()}
	at := int64(0)
	do := func(process int64, f string, call, ret []linearizability.Field) {
		for i, fields := range [][]linearizability.Field{call, ret} {
			h.Events = append(h.Events, linearizability.Event{Index: int64(len(h.Events)), Time: at, Process: process,
				Type: []linearizability.Type{linearizability.Invoke, linearizability.OK}[i], F: f, Fields: fields})
			at += int64(time.Millisecond)
		}
		at += int64(time.Second)
	}
	field := func(name string, v linearizability.Value) linearizability.Field {
		return linearizability.Field{Name: name, Value: v}
	}
	key, ttl := field("key", linearizability.String("shard")), field("ttl", linearizability.Int(int64(2*time.Second)))
	a, b := field("owner", linearizability.String("a#1")), field("owner", linearizability.String("b#1"))
	one, two := field("token", linearizability.Int(1)), field("token", linearizability.Int(2))
	do(0, "acquire", []linearizability.Field{key, a, ttl}, []linearizability.Field{one})
	for range 1000 {
		do(0, "renew", []linearizability.Field{key, a, one, ttl}, nil)
	}
	do(1, "acquire", []linearizability.Field{key, b, ttl}, []linearizability.Field{two})

	small, err := linearizability.Reduce(context.Background(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
	if err != nil {
		fmt.Println(err)
		return
	}
	small.WriteJSON(os.Stdout)
	// Output:
	// {"meta":{"version":1,"drift":0,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
	// {"index":2000,"time":1002000000000,"process":0,"type":"invoke","f":"acquire","key":"shard","owner":"a#1","ttl":2000000000,"was":"renew"}
	// {"index":2001,"time":1002001000000,"process":0,"type":"ok","f":"acquire","token":1}
	// {"index":2002,"time":1003002000000,"process":1,"type":"invoke","f":"acquire","key":"shard","owner":"b#1","ttl":2000000000}
	// {"index":2003,"time":1003003000000,"process":1,"type":"ok","f":"acquire","token":2}
}

// BenchmarkReduce reduces 10,000 operations on a lease of which one is answered
// wrongly, its check included.
func BenchmarkReduce(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	text.WriteString(`{"meta":{"version":1,"late":0,"first":1}}` + "\n")
	at, token := 0, 0
	do := func(f, call, ret string) {
		fmt.Fprintf(&text, `{"index":%d,"time":%d,"process":0,"type":"invoke","f":%q,"key":"k",%s}`+"\n", 2*at, 10*at, f, call)
		fmt.Fprintf(&text, `{"index":%d,"time":%d,"process":0,"type":"ok","f":%q%s}`+"\n", 2*at+1, 10*at+5, f, ret)
		at++
	}
	for at < 9_990 {
		token++
		who := fmt.Sprintf(`"owner":"c%d"`, token)
		do("acquire", who+`,"ttl":1000`, fmt.Sprintf(`,"token":%d`, token))
		for range 1 + rng.IntN(10) {
			do("renew", fmt.Sprintf(`%s,"ttl":1000,"token":%d`, who, token), "")
		}
		do("release", fmt.Sprintf(`%s,"token":%d`, who, token), "")
	}
	do("renew", fmt.Sprintf(`"owner":"c%d","ttl":1000,"token":%d`, token, token), "") // after its release
	h, err := linearizability.Read(strings.NewReader(text.String()), "long")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		got, err := linearizability.Reduce(b.Context(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
		if err != nil || len(got.Ops()) > 10 {
			b.Fatal(len(got.Ops()), err)
		}
	}
}
