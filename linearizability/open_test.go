package linearizability_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"fencepost/linearizability"
)

// leaseLines is n operations on a lease by owners that change now and then.
func leaseLines(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"meta":{"version":1,"drift":0.0002,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}` + "\n")
	for i := range n {
		process, owner := i%5, i/1000
		fmt.Fprintf(&b, `{"index":%d,"time":%d,"process":%d,"type":"invoke","f":"acquire","key":"shard-%d","owner":"node-%d#%d","ttl":2000000000}`+"\n", 2*i, 1000*i, process, i%100, process, owner)
		fmt.Fprintf(&b, `{"index":%d,"time":%d,"process":%d,"type":"ok","f":"acquire","key":"shard-%d","owner":"node-%d#%d","token":%d}`+"\n", 2*i+1, 1000*i+900, process, i%100, process, owner, i+1)
	}
	return b.Bytes()
}

func BenchmarkStream(b *testing.B) {
	const operations = 100_000
	lines := leaseLines(operations)
	for _, format := range linearizability.Formats() {
		var text bytes.Buffer
		s, err := linearizability.Reader{}.Open(bytes.NewReader(lines), "h")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := (linearizability.Writer{Format: format}).Convert(&text, s); err != nil {
			b.Fatal(err)
		}
		b.Run("read/"+format.String(), func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				s, err := linearizability.Reader{}.Open(bytes.NewReader(text.Bytes()), "h")
				if err != nil {
					b.Fatal(err)
				}
				for _, err := range s.Events() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(2*operations*b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
		b.Run("write/"+format.String(), func(b *testing.B) {
			h, err := linearizability.Read(bytes.NewReader(lines), "h")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (linearizability.Writer{Format: format}).Write(io.Discard, &h); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(2*operations*b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// TestStreamMakesNoGarbage: what an event of JSON lines costs does not grow with
// the history.
func TestStreamMakesNoGarbage(t *testing.T) {
	const operations = 5_000
	lines := leaseLines(operations)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := linearizability.Reader{}.Open(bytes.NewReader(lines), "h")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	runtime.ReadMemStats(&after)
	if n != 2*operations {
		t.Errorf("%d events, want %d", n, 2*operations)
	}
	if made := after.Mallocs - before.Mallocs; made > 700 {
		t.Errorf("%d allocations for %d events, want next to none", made, n)
	}
}

// TestInternedTextsAreBounded: owners that never come again leave nothing.
func TestInternedTextsAreBounded(t *testing.T) {
	const owners = 60_000
	var text strings.Builder
	for i := range owners {
		fmt.Fprintf(&text, `{"type":"info","f":"kill","owner":"an owner with a long name, number %d"}`+"\n", i)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s, err := linearizability.Reader{}.Open(strings.NewReader(text.String()), "h")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Events() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if held := int64(heap()) - int64(before); held > 4<<20 {
		t.Errorf("%d bytes are held after %d owners, want few", held, owners)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(text)
}

func TestStreamGivesEachEventOnce(t *testing.T) {
	s, err := linearizability.Reader{}.Open(strings.NewReader(invoke+ok+strings.Replace(invoke, `"index":0,"time":5`, `"index":2,"time":7`, 1)+"{\n"), "h")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for round := range 4 { // each loop goes on where the one before it stopped
		for e, err := range s.Events() {
			if err != nil {
				got = append(got, err.Error())
				break
			}
			got = append(got, fmt.Sprintf("%d:%d", round, e.Index))
			break
		}
	}
	if want := "0:0 1:1 2:2 h:4: truncated: the file ends inside an event"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
	// The error stays.
	for _, err := range s.Events() {
		var syntax *linearizability.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("got %v once more, want the SyntaxError", err)
		}
	}
}

func TestStreamKnowsItsMetaAtOnce(t *testing.T) {
	s, err := linearizability.Reader{}.Open(strings.NewReader(`{"meta":{"version":1,"eps":7}}`+"\n"+invoke), "h")
	if err != nil || s.Meta().Eps != 7 || s.Format() != linearizability.FormatJSONLines {
		t.Fatalf("meta %+v, format %v, %v", s.Meta(), s.Format(), err)
	}
	// That it is a journal shows where a time steps back.
	s, err = linearizability.Reader{}.Open(strings.NewReader("{:process 0, :type :invoke, :f :read, :time 9}\n{:process 1, :type :invoke, :f :read, :time 8}\n"), "h")
	if err != nil || s.Meta().Journal {
		t.Fatalf("a journal at once: %v, %v", s.Meta().Journal, err)
	}
	for range s.Events() {
	}
	if !s.Meta().Journal {
		t.Error("no journal at the end")
	}
}

// TestATornLastLineIsTheEnd: a recorder that was killed leaves one, and all that
// came before it is a history.
func TestATornLastLineIsTheEnd(t *testing.T) {
	const whole = `{"process":0,"type":"invoke","f":"read"}` + "\n"
	const next = `{"process":0,"type":"ok","f":"read","value":true}`
	for n := 1; n < len(next); n++ {
		h, err := linearizability.Read(strings.NewReader(whole+next[:n]), "h")
		if err != nil || len(h.Events) != 1 || len(h.Notes) != 1 {
			t.Fatalf("%s: %d events, %v, %v", next[:n], len(h.Events), h.Notes, err)
		}
		// With a newline it is no end, and without anything before it no history.
		for _, text := range []string{whole + next[:n] + "\n", next[:n]} {
			if _, err := linearizability.Read(strings.NewReader(text), "h"); err == nil {
				t.Errorf("%q is a history", text)
			}
		}
	}
	if h, err := linearizability.Read(strings.NewReader(whole+next), "h"); err != nil || len(h.Events) != 2 || len(h.Notes) != 0 {
		t.Errorf("%d events, %v, %v", len(h.Events), h.Notes, err)
	}
}
