package atlas_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/atlas"
	"fencepost/props/explore"
	"fencepost/props/judge"
	"fencepost/props/mutant"
)

// survey explores 2 clients with 1 message in flight.
func survey(t *testing.T, set func(*explore.Options)) atlas.Survey {
	t.Helper()
	o := explore.Default()
	o.Messages = 1
	if set != nil {
		set(&o)
	}
	r, err := explore.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := atlas.Survey{What: "the built-in implementation", Options: o, Report: r, Took: 2 * time.Second}
	if c := r.Counterexample; c != nil {
		s.Events = judge.Trace(c, o.Subject, r.Judged).Events
	}
	return s
}

func bug(t *testing.T, name string) func(*explore.Options) {
	t.Helper()
	m, err := mutant.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *explore.Options) { o.Subject, o.Clients = m.Subject, 1 }
}

func draw(t *testing.T, s atlas.Survey) string {
	t.Helper()
	var b bytes.Buffer
	if err := atlas.HTML(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePageStandsAlone(t *testing.T) {
	for name, set := range map[string]func(*explore.Options){
		"holds":    nil,
		"violated": bug(t, "off-by-one"),
		"bounded":  func(o *explore.Options) { o.MaxDepth = 5 },
		"nothing":  func(o *explore.Options) { o.MaxDepth, o.Faults, o.Clients = 1, 0, 1 },
	} {
		t.Run(name, func(t *testing.T) { standsAlone(t, draw(t, survey(t, set))) })
	}
}

// standsAlone checks that a page is well-formed and asks for nothing from
// elsewhere.
func standsAlone(t *testing.T, page string) {
	t.Helper()
	if found := regexp.MustCompile(`(?i)https?:|@import|url\([^#]`).FindString(page); found != "" {
		t.Errorf("the page refers to something outside: %s", found)
	}
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script", "link", "img", "iframe", "image", "use":
			t.Errorf("the page has a %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			if n := a.Name.Local; n == "src" || n == "href" || strings.HasPrefix(n, "on") || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "ZgotmplZ") {
				t.Errorf("a %s has %s=%q", e.Name.Local, n, a.Value)
			}
		}
	}
}

// TestEveryLevelHasItsBars: one to scale and one on the logarithmic scale, and
// a cell for each kind of action that left it.
func TestEveryLevelHasItsBars(t *testing.T) {
	s := survey(t, nil)
	page := draw(t, s)
	levels, cells := len(s.Report.Found.Levels), 0
	for _, l := range s.Report.Found.Levels {
		for _, n := range l.Steps {
			if n > 0 {
				cells++
			}
		}
	}
	if levels < 10 || cells < 5*levels/2 {
		t.Fatalf("%d levels and %d cells are too few to show anything", levels, cells)
	}
	for class, want := range map[string]int{"states": levels, "states log": levels} {
		if got := strings.Count(page, `<rect class="`+class+`"`); got != want {
			t.Errorf("%d bars of class %q for %d levels", got, class, want)
		}
	}
	if got := strings.Count(page, " steps</title></rect>"); got != cells {
		t.Errorf("%d cells, want %d", got, cells)
	}
}

func TestLevelsKnownInPartAreHatched(t *testing.T) {
	s := survey(t, func(o *explore.Options) { o.MaxStates, o.Messages, o.Workers = 5_000, 2, 1 })
	if f := &s.Report.Found; f.Bounded != "states" || len(f.Levels) != f.Depth+2 {
		t.Fatalf("bounded by %q, %d levels at depth %d; the last one should be known in part", f.Bounded, len(f.Levels), f.Depth)
	}
	page := draw(t, s)
	if n := strings.Count(page, `class="states part"`); n != 1 {
		t.Errorf("%d bars are hatched, want the last", n)
	}
	for _, want := range []string{"<h1>unknown</h1>", "Bounded at ", "hatched levels", " (in part)</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if whole := draw(t, survey(t, nil)); strings.Contains(whole, "hatched levels") || strings.Contains(whole, "states part") {
		t.Error("a complete exploration is drawn as known in part")
	}
}

func TestTheCounterexampleIsDrawn(t *testing.T) {
	s := survey(t, bug(t, "off-by-one"))
	page := draw(t, s)
	for _, want := range []string{
		"<h1>violated</h1>", `<li class="bad">belief-implies-ownership</li>`, `<line class="breaks"`, "belief-implies-ownership breaks</text>",
		`aria-label="timeline, told in the table below"`, ".timeline { ", "Violated: belief-implies-ownership",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got, want := strings.Count(page, "<li value="), len(s.Report.Counterexample.Actions); got != want || want != 7 {
		t.Errorf("%d actions are listed of %d; TTL 4 at a rate of 3/4 takes 3 to lead and 4 ticks", got, want)
	}
	if strings.Contains(page, `<li class="ok">belief-implies-ownership`) {
		t.Error("what is violated is ticked off")
	}
}

// TestWhatNeverHappenedIsSaid: with one message in flight no stale token ever
// reaches the storage, and nobody takes over while one is on its way.
func TestWhatNeverHappenedIsSaid(t *testing.T) {
	page := draw(t, survey(t, nil))
	if !strings.Contains(page, "the storage refuses a stale token: never</text>") || strings.Count(page, `<g class="never">`) != 2 || strings.Count(page, `<g class="seen">`) != 5 {
		t.Error("two of seven properties were never reached, and the page does not say so")
	}
}

func TestTextFromOutsideCanDoNoHarm(t *testing.T) {
	s := survey(t, bug(t, "off-by-one"))
	for _, text := range []string{"</title><script>alert(1)</script>", "\"><svg onload=x>", "{{.What}}", "</style><b>"} {
		s.What, s.Report.Counterexample.Shows = text, text
		standsAlone(t, draw(t, s))
	}
}

// TestEqualSurveysGiveEqualPages: on any number of cores, but for the memory
// that they took.
func TestEqualSurveysGiveEqualPages(t *testing.T) {
	one := survey(t, func(o *explore.Options) { o.Workers = 1 })
	two := survey(t, func(o *explore.Options) { o.Workers = 2 })
	two.Report.Found.Memory = one.Report.Found.Memory
	if draw(t, one) != draw(t, two) {
		t.Error("two pages of one world differ")
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestErrorsAreReturned(t *testing.T) {
	s := survey(t, bug(t, "off-by-one"))
	if err := atlas.HTML(brokenPipe{}, s); !errors.Is(err, errPipe) {
		t.Errorf("error is %v, not the writer's", err)
	}
	s.Events = []model.Event{{Node: model.MaxNodes}}
	if err := atlas.HTML(io.Discard, s); err == nil {
		t.Error("events that no run emits are drawn")
	}
}
