package atlas

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
	"fencepost/props/timeline"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("atlas").Parse(pageText))

// Survey is an exploration that is to be drawn.
type Survey struct {
	What    string // the subject, for a sentence
	Options explore.Options
	Report  *explore.Report
	Took    time.Duration
	// Events are the trace of Report.Counterexample, where there is one.
	Events []model.Event
}

// HTML writes the survey as one page: equal surveys give equal pages. The
// error is w's, or says that s.Events is no trace.
func HTML(w io.Writer, s Survey) error {
	p := newPage(&s)
	if c := s.Report.Counterexample; c != nil {
		p.Failure = &failure{Invariant: s.Report.First.Invariant.String(), Text: c.Shows, Actions: c.Actions}
		if err := p.Failure.draw(&s); err != nil {
			return err
		}
	}
	return pageTemplate.Execute(w, p)
}

// page is what the template draws.
type page struct {
	What, Worlds, Verdict, Claim string
	Accuracy, Checked            string
	Tiles                        []tile
	On, Off, Assumed             []string
	Map                          chart
	Clients                      []share
	Judged                       []string
	Unjudged                     []explore.Unjudged
	Fair                         *fair
	Failure                      *failure
	Numbers                      table
}

type tile struct{ Value, Unit, Note string }

// share is a part of a whole, in percent of the largest part.
type share struct {
	Name, Count string
	Percent     float64
}

type fair struct {
	Longest, Bound, Delay, Every time.Duration
	Percent                      float64 // of the bound
	States                       string  // that wait so long, and the verb
}

type failure struct {
	Invariant, Text string
	Actions         []sim.Action
	Style           template.CSS // of the timeline
	Timeline        template.HTML
}

// table is the numbers behind the map.
type table struct {
	Kinds []string
	Rows  []row
}

type row struct {
	Depth  int
	States string
	Steps  []string
	Part   bool
}

func newPage(s *Survey) *page {
	r, f := s.Report, &s.Report.Found
	p := &page{
		What: strings.TrimSuffix(s.What, "."), Worlds: s.Options.String(), Verdict: r.Verdict.String(), Claim: sentence(r.Claim()), Accuracy: sentence(r.Accuracy()),
		Checked: sentence(r.Checked()), Assumed: s.Options.Assumed(),
		On: s.Options.Faults.Names(), Off: (explore.AllFaults &^ s.Options.Faults).Names(), Map: newChart(r),
	}
	seconds := max(s.Took.Seconds(), 1e-3)
	p.Tiles = []tile{
		{explore.Grouped(f.States), "states", short(uint64(float64(f.States)/seconds)) + " a second"},
		{explore.Grouped(f.Transitions), "transitions", short(uint64(float64(f.Transitions)/seconds)) + " a second"},
		{fmt.Sprint(f.Depth), "actions deep", "every schedule so long was covered"},
		{brief(s.Took), "seconds", ""},
		{fmt.Sprintf("%.1f", float64(f.Memory)/float64(max(f.States, 1))), "bytes a state", fmt.Sprintf("%.1f MiB at the peak", float64(f.Memory)/(1<<20))},
	}
	if f.Complete {
		p.Tiles[2].Note = "and no state lies beyond"
	}
	var most uint64
	for _, c := range r.Clients {
		most = max(most, c.States)
	}
	for _, c := range r.Clients {
		p.Clients = append(p.Clients, share{c.String(), explore.Grouped(c.States), 100 * float64(c.States) / float64(most)})
	}
	judged, others := r.Settled()
	for v := range judged.All() {
		if !r.Violated.Has(v) {
			p.Judged = append(p.Judged, v.String())
		}
	}
	p.Unjudged = others
	if w := r.Fair; w != nil && r.Verdict != explore.Violated && w.Bound > 0 {
		p.Fair = &fair{w.Longest, w.Bound, w.Delay, w.Every, 100 * float64(w.Longest) / float64(w.Bound), waiting(w.States)}
	}
	kinds := kindsOf(f)
	for _, k := range kinds {
		p.Numbers.Kinds = append(p.Numbers.Kinds, k.String())
	}
	for depth := range f.Levels {
		line := row{Depth: depth, States: explore.Grouped(f.Levels[depth].States), Part: f.Bounded != "" && depth > f.Depth}
		for _, k := range kinds {
			line.Steps = append(line.Steps, explore.Grouped(stepsAt(f, depth, k)))
		}
		p.Numbers.Rows = append(p.Numbers.Rows, line)
	}
	return p
}

func waiting(states uint64) string {
	if states == 1 {
		return "One state waits"
	}
	return explore.Grouped(states) + " states wait"
}

// brief is d in seconds, with two digits at the least.
func brief(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.2g", d.Seconds())
	}
	return fmt.Sprintf("%.1f", d.Seconds())
}

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

var errTimeline = errors.New("the page of the timeline has no style or no body to take over")

// draw takes over the picture of the counterexample from the page that
// package timeline makes of it.
func (f *failure) draw(s *Survey) error {
	var b bytes.Buffer
	if err := timeline.HTML(&b, s.Events, sim.Names(), timeline.Options{Title: "What happens", Violation: s.Report.First}); err != nil {
		return err
	}
	between := func(text, from, to string) (string, bool) {
		_, text, ok := strings.Cut(text, from)
		text, _, ok2 := strings.Cut(text, to)
		return text, ok && ok2
	}
	style, ok := between(b.String(), "<style>", "</style>")
	body, ok2 := between(b.String(), "<body>", "</body>")
	if !ok || !ok2 {
		return errTimeline
	}
	// Its template has escaped what came from outside.
	f.Style, f.Timeline = template.CSS(style), template.HTML(body)
	return nil
}
