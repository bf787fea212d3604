package timeline_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fencepost/model"
	"fencepost/props/sim"
	"fencepost/props/timeline"
)

var update = flag.Bool("update", false, "write the golden timelines anew, to be reviewed as text")

// golden compares got with testdata/name, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestTimelinesLookAsReviewed(t *testing.T) {
	schedules, err := filepath.Glob("testdata/*.json")
	if err != nil || len(schedules) == 0 {
		t.Fatal("no schedules in testdata", err)
	}
	for _, path := range schedules {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			s, events, res := run(t, name)
			o := timeline.Options{Title: s.Name + ": " + s.Shows, Violation: res.First}
			var b bytes.Buffer
			if err := timeline.Render(&b, events, sim.Names(), o); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", b.Bytes())

			b.Reset()
			o.ASCII, o.Width = true, 72
			if err := timeline.Render(&b, events, sim.Names(), o); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".ascii.txt", b.Bytes())
		})
	}
}

func TestPageLooksAsReviewed(t *testing.T) {
	s, events, res := run(t, "frozen-client-unfenced")
	var b bytes.Buffer
	if err := timeline.HTML(&b, events, sim.Names(), timeline.Options{Title: s.Name, Violation: res.First}); err != nil {
		t.Fatal(err)
	}
	golden(t, "frozen-client-unfenced.html", b.Bytes())
}

func TestAnEmptyTraceSaysSo(t *testing.T) {
	for name, render := range renderers {
		var b strings.Builder
		if err := render(&b, nil, sim.Names(), timeline.Options{}); err != nil {
			t.Fatal(name, err)
		}
		if !strings.Contains(b.String(), "Nothing happened: the trace has no events to show.") {
			t.Errorf("%s: %q does not say that nothing happened", name, b.String())
		}
		b.Reset()
		v := model.Violation{Invariant: model.BeliefSafety, Node: 3, Other: 4, Token: 2, Limit: 1}
		if err := render(&b, nil, sim.Names(), timeline.Options{Violation: v}); err != nil {
			t.Fatal(name, err)
		}
		if !strings.Contains(b.String(), "C1 leads under token 2 while C2 still leads under 1") {
			t.Errorf("%s: %q does not explain the violation", name, b.String())
		}
	}
}

type renderer func(io.Writer, []model.Event, *model.Names, timeline.Options) error

var renderers = map[string]renderer{"Render": timeline.Render, "HTML": timeline.HTML}

func TestNodesThatNoRunHasAreRefused(t *testing.T) {
	for name, render := range renderers {
		for _, e := range []model.Event{
			{Kind: model.KindPause, Node: model.MaxNodes},
			{Kind: model.KindInvoke, Peer: 255},
			{Kind: model.KindLead, Owner: model.Owner{Node: model.MaxNodes}},
			{Kind: model.KindLapse, Holder: model.Owner{Node: model.MaxNodes}},
		} {
			err := render(io.Discard, []model.Event{{Kind: model.KindHeal}, e}, sim.Names(), timeline.Options{})
			if err == nil || !strings.Contains(err.Error(), "event 1 names node") {
				t.Errorf("%s of %+v: error %v does not name the event", name, e, err)
			}
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	_, events, _ := run(t, "frozen-client")
	for name, render := range renderers {
		if err := render(brokenPipe{}, events, sim.Names(), timeline.Options{}); err != io.ErrClosedPipe {
			t.Errorf("%s: error is %v, not the writer's", name, err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	_, events, res := run(b, "restarts")
	o := timeline.Options{Violation: res.First}
	b.ReportAllocs()
	for b.Loop() {
		if err := timeline.Render(io.Discard, events, sim.Names(), o); err != nil {
			b.Fatal(err)
		}
	}
}
