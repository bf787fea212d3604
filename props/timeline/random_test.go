package timeline_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"fencepost/model"
	"fencepost/props/sim"
	"fencepost/props/timeline"
)

// randomTrace is a run of one of the subjects: the built-in one, and two that
// break something now and then.
func randomTrace(t *testing.T, i int) ([]model.Event, model.Violation) {
	t.Helper()
	name := []string{"builtin", "mutant:unfenced", "mutant:from-reply"}[i%3]
	profile := sim.Raw()
	if i%2 == 0 {
		profile = sim.Chaos()
	}
	src := rand.NewPCG(uint64(i), 7)
	var trace sim.Trace
	w, err := sim.NewWorld(sim.RandomConfig(src), subjects()[name], sim.Options{Monitor: true, Trace: &trace})
	if err != nil {
		t.Fatal(err)
	}
	sim.Generate(src, &profile, &w, 20+i%100, nil)
	return trace.Events, w.First()
}

func text(t *testing.T, render renderer, events []model.Event, names *model.Names, o timeline.Options) string {
	t.Helper()
	var b strings.Builder
	if err := render(&b, events, names, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestEveryTraceFitsAndMarksWhatBroke(t *testing.T) {
	violated, pages := 0, 0
	for i := range 500 {
		events, v := randomTrace(t, i)
		o := timeline.Options{Title: fmt.Sprint("trace ", i), Violation: v, MaxRows: []int{0, 0, 1, 10, 50}[i%5]}
		o.Width = []int{0, -5, 1, 60, 61, 73, 80, 100, 101, 250}[i%10]
		limit := map[int]int{0: 100, -5: 60, 1: 60}[o.Width]
		limit = max(limit, o.Width)

		plain := text(t, timeline.Render, events, sim.Names(), o)
		if again := text(t, timeline.Render, events, sim.Names(), o); again != plain {
			t.Fatalf("trace %d: rendered twice, it differs", i)
		}
		o.Color = true
		if colored := text(t, timeline.Render, events, sim.Names(), o); ansi.ReplaceAllString(colored, "") != plain {
			t.Fatalf("trace %d: colour changes more than colour", i)
		} else if colored == plain {
			t.Fatalf("trace %d: there is no colour", i)
		}
		o.Color, o.ASCII = false, true
		ascii := text(t, timeline.Render, events, sim.Names(), o)
		sameShape(t, i, plain, ascii, limit)
		o.ASCII = false

		marked := strings.Count("\n"+plain, "\n►")
		banners := strings.Count(plain, "━━━ VIOLATED: "+v.Invariant.String()+" at ")
		want := 0
		if v.Invariant != model.NoInvariant {
			violated++
			want = 1
			if said := strings.Join(strings.Fields(plain), " "); !strings.Contains(said, v.Describe(sim.Names())) {
				t.Fatalf("trace %d: %q is not said in\n%s", i, v.Describe(sim.Names()), plain)
			}
		}
		if marked != want || banners != want {
			t.Fatalf("trace %d: %d marks and %d banners for %d violations\n%s", i, marked, banners, want, plain)
		}
		if i%16 > want { // a page is slow to read back: some, and more of those with a violation
			continue
		}
		pages++
		page := text(t, timeline.HTML, events, sim.Names(), o)
		if rows := strings.Count(page, `<tr class="violated">`); rows != want {
			t.Fatalf("trace %d: %d rows of the page are marked for %d violations\n%s", i, rows, want, page)
		}
		wellFormed(t, page)
	}
	if violated < 50 || pages < 30 {
		t.Errorf("only %d of 500 traces violated anything, only %d pages were read: nothing was checked", violated, pages)
	}
}

// sameShape checks that both texts fit, and differ in symbols alone.
func sameShape(t *testing.T, i int, unicode, ascii string, limit int) {
	t.Helper()
	for at := range len(ascii) {
		if ascii[at] > '~' {
			t.Fatalf("trace %d: byte %#x in ASCII\n%s", i, ascii[at], ascii)
		}
	}
	us, as := strings.Split(unicode, "\n"), strings.Split(ascii, "\n")
	legend := false // whose items are as many as there are different symbols
	for k, line := range us {
		n := utf8.RuneCountInString(line)
		if n > limit {
			t.Fatalf("trace %d: a line of %d columns, the limit is %d\n%s", i, n, limit, line)
		}
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\x1b\t\r") || strings.HasSuffix(line, " ") {
			t.Fatalf("trace %d: line %q", i, line)
		}
		if legend = legend || k > 2 && us[k-1] == ""; legend {
			continue
		}
		if k >= len(as) || len(as[k]) != n {
			t.Fatalf("trace %d: line %d is\n%s\nbut in ASCII it is not as long\n%s", i, k, line, ascii)
		}
	}
	for _, line := range as {
		if len(line) > limit {
			t.Fatalf("trace %d: a line of %d columns, the limit is %d\n%s", i, len(line), limit, line)
		}
	}
}

// wellFormed reads a page as XML, which its HTML is written to be, and checks
// that it asks for nothing from elsewhere.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, page)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script", "link", "img", "iframe", "image", "use":
			t.Fatalf("the page has a %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			if n := a.Name.Local; n == "src" || n == "href" || strings.HasPrefix(n, "on") || strings.Contains(a.Value, "NaN") {
				t.Fatalf("a %s has %s=%q", e.Name.Local, n, a.Value)
			}
		}
	}
}

func TestNamesFromOutsideCanDoNoHarm(t *testing.T) {
	_, events, res := run(t, "frozen-client-unfenced")
	for _, name := range []string{
		"\x1b[2J\x1b[31mred", "</title><script>alert(1)</script>", "\"><svg onload=x>", "{{.Title}}", "a\nb\tc\r", "\xff\xfe", "e\u0301\u200b\u202e",
		strings.Repeat("long", 100), "节点一号机房甲乙丙丁", "",
	} {
		names := *sim.Names()
		for n := range names {
			if names[n].Role == model.RoleClient {
				names[n].Name = name
			}
		}
		for _, o := range []timeline.Options{{Title: name, Violation: res.First, Width: 60}, {Title: name, Violation: res.First, ASCII: true}} {
			limit := max(o.Width, 60)
			if o.Width == 0 {
				limit = 100
			}
			out := text(t, timeline.Render, events, &names, o)
			for line := range strings.SplitSeq(out, "\n") {
				n := 0
				for _, r := range line {
					switch {
					case r < ' ' || r == 0x7f || r == utf8.RuneError || r == '\u0301' || r == '\u200b' || r == '\u202e', o.ASCII && r > '~':
						t.Fatalf("%q: rune %q in %q", name, r, line)
					case r >= 0x4e00 && r <= 0x9fff:
						n++
					}
					n++
				}
				if n > limit {
					t.Fatalf("%q: a line of %d columns, the limit is %d\n%s", name, n, limit, line)
				}
			}
			page := text(t, timeline.HTML, events, &names, o)
			if utf8.ValidString(name) && !strings.Contains(name, "\x1b") { // which XML has not, and HTML replaces
				wellFormed(t, page)
			}
			if strings.Contains(page, "<script") || strings.Contains(page, "<svg onload") {
				t.Fatalf("%q gets through", name)
			}
		}
	}
}
