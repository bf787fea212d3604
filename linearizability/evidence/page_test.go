package evidence_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fencepost/linearizability/evidence"
)

// samples are the pages that most tests draw.
func samples() map[string]evidence.Page {
	return map[string]evidence.Page{
		"fenced":   frozenClient(false),
		"unfenced": frozenClient(true),
		"jepsen":   jepsen(),
		"nothing":  {Verdict: evidence.Unknown},
		"untimed":  untimed(),
	}
}

// untimed is a register without times, whose last write nobody saw return.
func untimed() evidence.Page {
	return evidence.Page{
		Title: "register", Verdict: evidence.Holds, Model: "register", Unit: evidence.Order,
		Resources: []evidence.Resource{{Name: "x", Operations: []evidence.Operation{
			{ID: 1, Process: "0", Call: 0, Return: 3, Label: "write 1"},
			{ID: 2, Process: "1", Call: 1, Return: 2, Label: "read: 1"},
			{ID: 3, Process: "2", Call: 4, Return: evidence.Unbounded, Outcome: evidence.Info, Label: "write 2: timeout"},
		}, Order: evidence.Linearization{Placed: []evidence.Placed{{Op: 1, State: "1"}, {Op: 2, State: "1"}, {Op: 3, State: "2"}}}}},
	}
}

// many is a history too long to draw, of 40 processes. Its violation is in the
// middle, and one operation at the very end is evidence.
func many(n int) evidence.Page {
	r := evidence.Resource{Name: "lock", Verdict: evidence.Violated}
	for i := range n {
		r.Operations = append(r.Operations, evidence.Operation{
			ID: i, Process: strconv.Itoa(i % 40), Call: int64(i) * ms, Return: int64(i)*ms + 20*ms, Label: "acquire",
			Violates: i == n/2, Evidence: i == n/2 || i == n-1,
		})
	}
	return evidence.Page{Title: "many", Verdict: evidence.Violated, Resources: []evidence.Resource{r}, Omitted: 7}
}

func htmlOf(t *testing.T, p evidence.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := evidence.WriteHTML(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func svg(t *testing.T, p evidence.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := evidence.WriteSVG(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// element is a start tag, with the text that follows it directly.
type element struct {
	name, text string
	attr       map[string]string
}

func (e element) is(class string) bool {
	return slices.Contains(strings.Fields(e.attr["class"]), class)
}

var script = regexp.MustCompile(`(?s)<script>.*?</script>`)

// parse reads a page or a picture as XML, which both must be but for the one
// script of the page.
func parse(t testing.TB, text string) (all []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(script.ReplaceAllString(text, "")))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: make(map[string]string)}
			for _, a := range token.Attr {
				if _, twice := e.attr[a.Name.Local]; twice {
					t.Errorf("a %s has %s twice", e.name, a.Name.Local)
				}
				e.attr[a.Name.Local] = a.Value
			}
			all = append(all, e)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].text += string(token)
			}
		}
	}
}

var elsewhere = regexp.MustCompile(`https?:|@import|url\([^#]|nan[" ,]|zgotmplz|<no value>`)

// standsAlone checks that a page or a picture asks for nothing, and can do
// nothing but what its own script does.
func standsAlone(t testing.TB, text string) {
	t.Helper()
	if found := elsewhere.FindString(strings.ToLower(strings.ReplaceAll(script.ReplaceAllString(text, ""), `xmlns="http://www.w3.org/2000/svg"`, ""))); found != "" {
		t.Errorf("it has %q", found)
	}
	if n := strings.Count(text, "<script"); n > 1 {
		t.Errorf("it has %d scripts", n)
	}
	for _, e := range parse(t, text) {
		switch e.name {
		case "link", "img", "iframe", "image", "use", "object", "base", "foreignObject":
			t.Errorf("it has a %s", e.name)
		}
		for name, value := range e.attr {
			if name == "src" || strings.HasPrefix(name, "on") || name == "href" && !strings.HasPrefix(value, "#") {
				t.Errorf("a %s has %s=%q", e.name, name, value)
			}
		}
	}
}

func TestPagesAndPicturesStandAlone(t *testing.T) {
	for name, p := range samples() {
		t.Run(name, func(t *testing.T) {
			page := htmlOf(t, p)
			standsAlone(t, page)
			if !strings.Contains(page, `content="default-src &#39;none&#39;; style-src`) && !strings.Contains(page, `content="default-src 'none'; style-src`) {
				t.Error("the page does not forbid what it does not need")
			}
			picture := svg(t, p)
			standsAlone(t, picture)
			if strings.Contains(picture, "<script") || strings.Contains(picture, "var(") {
				t.Error("the picture has a script, or a style that only browsers understand")
			}
		})
	}
}

const harm = "</script><img src=x onerror=alert(1)>\"'`{{.Title}}]]>&amp;\x00\x01\x80\u202e\ufffe"

// fill puts a text of its own, that means harm, into every string of v but
// those of its fixed words.
func fill(v reflect.Value, texts *[]string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[evidence.Verdict]() {
			return
		}
		s := fmt.Sprintf("q%dq", len(*texts))
		*texts = append(*texts, s)
		v.SetString(s + harm)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), texts)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), texts)
		}
	}
}

// TestTextFromOutsideIsShownAndDoesNoHarm: whatever the strings are, and none
// of them is forgotten. What they name stays together: strings of one holder
// differ here.
func TestTextFromOutsideIsShownAndDoesNoHarm(t *testing.T) {
	for name, p := range map[string]evidence.Page{"unfenced": frozenClient(true), "jepsen": jepsen()} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			fill(reflect.ValueOf(&p).Elem(), &texts)
			page, picture := htmlOf(t, p), svg(t, p)
			standsAlone(t, page)
			standsAlone(t, picture)
			for i, s := range texts {
				if !strings.Contains(page, s) && !hidden(p, s) {
					t.Errorf("text %d of %d is not on the page", i, len(texts))
				}
			}
			if !strings.Contains(page, "�") {
				t.Error("what no page may contain is gone without a trace")
			}
		})
	}
}

// hidden says whether a text is the Who of an operation, which has a colour and
// no text.
func hidden(p evidence.Page, s string) bool {
	for _, r := range p.Resources {
		for _, op := range r.Operations {
			if strings.HasPrefix(op.Who, s) {
				return true
			}
		}
	}
	return false
}

func FuzzTextDoesNoHarm(f *testing.F) {
	f.Add(harm)
	f.Add("<!--")
	f.Add("acquire → 12")
	f.Fuzz(func(t *testing.T, s string) {
		p := twoHolders()
		p.Title, p.Reason, p.Command, p.Resources[0].Name = s, s, s, s
		p.Resources[0].Operations[0].Label, p.Resources[0].Operations[1].Details, p.Findings[0].Lines[0].Text = s, s, s
		var b bytes.Buffer
		if err := evidence.WriteHTML(&b, p); err != nil {
			t.Fatal(err)
		}
		standsAlone(t, b.String())
	})
}

// TestEveryOperationCanBeReached: by keyboard, in order of the calls, with a
// text for who does not see it.
func TestEveryOperationCanBeReached(t *testing.T) {
	pages := samples()
	pages["many"] = many(5000)
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			want := 0
			for _, r := range p.Resources {
				want += len(r.Operations)
			}
			want = min(want, 2000)
			got, last := 0, 0.0
			for _, e := range parse(t, htmlOf(t, p)) {
				switch {
				case e.is("ops"):
					last = 0
				case e.is("op") && e.name == "g" && e.attr["id"] != "":
					got++
					at, err := strconv.ParseFloat(e.attr["data-a"], 64)
					if e.attr["aria-label"] == "" || e.attr["tabindex"] != "0" || err != nil {
						t.Errorf("an operation cannot be reached: %v", e.attr)
					}
					if at < last {
						t.Errorf("%s is called before the one in front of it", e.attr["id"])
					}
					last = at
				}
			}
			if got != want {
				t.Errorf("%d operations are drawn, want %d", got, want)
			}
		})
	}
}

func TestLabelsTellTheOperation(t *testing.T) {
	page := htmlOf(t, frozenClient(true))
	for _, want := range []string{
		`aria-label="A writes: write x=7: landed; ok, violates; 12.8 s to 12.9 s (100 ms); lines 20, 21; token 1"`,
		`aria-label="B: acquire: held by A; refused; 3.4 s to 3.5 s (100 ms); lines 7, 8"`,
		`<title>lease of B · token 2; may have held 8.4 s to 16.4 s (8 s); must have held 8.6 s to 16 s (7.4 s)</title>`,
		`<title>A · token 1 believes to lead 1.1 s to 13.5 s (12.4 s); as recorded; waived: its clock stood still for 8 s</title>`,
		`<title>write under token 1 landed</title>`,
		`<title>fault: A frozen; 4.3 s to 12.3 s (8 s); process and both clocks stand still; lines 11, 20</title>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestEqualPagesGiveEqualBytes: in whatever order the operations come.
func TestEqualPagesGiveEqualBytes(t *testing.T) {
	for name, p := range samples() {
		t.Run(name, func(t *testing.T) {
			page, picture := htmlOf(t, p), svg(t, p)
			for i := range p.Resources {
				slices.Reverse(p.Resources[i].Operations)
			}
			if htmlOf(t, p) != page || svg(t, p) != picture {
				t.Error("two pages of the same operations differ")
			}
		})
	}
}

// TestThePageIsLeftAlone: drawing sorts copies.
func TestThePageIsLeftAlone(t *testing.T) {
	p, same := frozenClient(true), frozenClient(true)
	for _, q := range []*evidence.Page{&p, &same} {
		slices.Reverse(q.Resources[0].Operations)
		slices.Reverse(q.Resources[0].Tenures)
		slices.Reverse(q.Resources[0].Beliefs)
	}
	htmlOf(t, p)
	if !reflect.DeepEqual(p, same) {
		t.Error("drawing a page changed it")
	}
}

// TestTheOrderIsDrawnWhereItCanBe: each dot between the call and the return of
// its operation, and none left of the one before.
func TestTheOrderIsDrawnWhereItCanBe(t *testing.T) {
	for _, name := range []string{"fenced", "unfenced", "jepsen", "untimed"} {
		t.Run(name, func(t *testing.T) {
			p := samples()[name]
			var dots [][]float64 // the instants of each resource
			for _, e := range parse(t, htmlOf(t, p)) {
				if e.is("ops") {
					dots = append(dots, nil)
				}
				if e.is("dot") && e.attr["data-a"] != "" {
					at, err := strconv.ParseFloat(e.attr["data-a"], 64)
					if err != nil {
						t.Fatal(err)
					}
					dots[len(dots)-1] = append(dots[len(dots)-1], at)
				}
			}
			for i, r := range p.Resources {
				if len(dots[i]) != len(r.Order.Placed) || len(dots[i]) < 3 {
					t.Fatalf("%d dots for %d operations in order", len(dots[i]), len(r.Order.Placed))
				}
				if !slices.IsSorted(dots[i]) {
					t.Errorf("the dots of %s are not in order of time: %v", r.Name, dots[i])
				}
				for j, o := range r.Order.Placed {
					at := slices.IndexFunc(r.Operations, func(op evidence.Operation) bool { return op.ID == o.Op })
					if op := r.Operations[at]; dots[i][j] < float64(op.Call) || dots[i][j] > float64(op.Return) {
						t.Errorf("dot %d of %s is at %v, but its operation is from %d to %d", j+1, r.Name, dots[i][j], op.Call, op.Return)
					}
				}
			}
		})
	}
}

// TestWhatBreaksIsSeenFirst: the view of a long history has the violation, and
// the picture alone has nothing beyond it.
func TestWhatBreaksIsSeenFirst(t *testing.T) {
	p := many(5000)
	all := parse(t, htmlOf(t, p))
	from, _ := strconv.ParseFloat(all[slices.IndexFunc(all, func(e element) bool { return e.attr["id"] == "picture" })].attr["data-first"], 64)
	to, _ := strconv.ParseFloat(all[slices.IndexFunc(all, func(e element) bool { return e.attr["id"] == "picture" })].attr["data-last"], 64)
	bad := p.Resources[0].Operations[2500]
	if float64(bad.Call) < from || float64(bad.Return) > to {
		t.Errorf("the view from %v to %v lacks the violation at %d to %d", from, to, bad.Call, bad.Return)
	}
	if to-from > 200*float64(ms) {
		t.Errorf("the view is %v long; 40 operations, one called each ms, take about 40 ms", to-from)
	}
	ids := make(map[string]bool)
	for _, e := range parse(t, svg(t, p)) {
		if e.is("op") && e.attr["id"] != "" {
			ids[e.attr["id"]] = true
		}
	}
	if !ids["op2500"] || ids["op4999"] || len(ids) > 300 {
		t.Errorf("the picture has %d operations, the violation: %t, the far end: %t", len(ids), ids["op2500"], ids["op4999"])
	}
}

// TestWhatIsLeftOutIsSaid, and evidence never is.
func TestWhatIsLeftOutIsSaid(t *testing.T) {
	p := many(5000)
	page := htmlOf(t, p)
	if !strings.Contains(page, "Left out: 3007 operations,") || !strings.Contains(page, `id="op4999"`) {
		t.Error("of 5,000 operations and 7 left out before, 2,000 are drawn: the page does not say so, or left out evidence")
	}
	if !strings.Contains(svg(t, p), "Left out: 3007 operations,") {
		t.Error("the picture does not say what is left out")
	}
	if strings.Contains(htmlOf(t, jepsen()), "Left out") {
		t.Error("a page that shows all says that it does not")
	}
	long := untimed()
	for i := range int64(1200) {
		long.Faults = append(long.Faults, evidence.Fault{Name: "kill", Span: span(i, i)})
		long.Resources[0].Highest = append(long.Resources[0].Highest, evidence.Step{At: i, Token: uint64(i)})
	}
	if !strings.Contains(htmlOf(t, long), "Left out: tenures, beliefs, faults or tokens") {
		t.Error("of 1,200 faults 1,000 are drawn: the page does not say so")
	}
	var crowd evidence.Page
	crowd.Verdict = evidence.Violated
	for i := range 100 {
		crowd.Resources = append(crowd.Resources, evidence.Resource{Name: fmt.Sprintf("lease-%d;", i), Verdict: evidence.Holds, Operations: []evidence.Operation{{ID: i, Label: "get"}}})
	}
	crowd.Resources[90].Verdict = evidence.Violated
	page = htmlOf(t, crowd)
	if !strings.Contains(page, "Left out: 76 operations, those farthest from what is shown. Left out: 76 resources.") || !strings.Contains(page, "lease-90;") || strings.Contains(page, "lease-50;") ||
		strings.Index(page, "lease-90;") > strings.Index(page, "lease-0;") {
		t.Error("of 100 resources 24 are drawn, the violated one first: the page does not say so")
	}
}

// TestMarksHaveForms: no meaning is in a colour alone.
func TestMarksHaveForms(t *testing.T) {
	count := func(p evidence.Page, class string) (n int) {
		for _, e := range parse(t, htmlOf(t, p)) {
			if e.is(class) && (len(e.attr["data-a"]) > 0 || e.name != "g") {
				n++
			}
		}
		return n
	}
	legend := 1 // one more of each, in the legend
	fenced, unfenced := frozenClient(false), frozenClient(true)
	for _, c := range []struct {
		name, class string
		p           evidence.Page
		want        int
	}{
		{"a cross for each refusal", "cross", fenced, 4 + legend},
		{"a question mark for each unknown outcome", "doubt", untimed(), 1 + legend},
		{"a refused write", "refused", fenced, 1},
		{"landed writes", "landed", unfenced, 3},
		{"hatched where a lease may be held", "may", fenced, 2 + legend},
		{"solid where it must be held", "must", fenced, 2},
		{"the end of the longest order", "stuck", unfenced, 1},
	} {
		if got := count(c.p, c.class); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if n := strings.Count(htmlOf(t, unfenced), `<g class="badge" data-y`); n != 1 {
		t.Errorf("%d operations have the mark of the violation, want 1", n)
	}
}

func TestTheLegendExplainsWhatOccurs(t *testing.T) {
	for name, want := range map[string]map[string]bool{
		"untimed": {"operation, ok": true, "outcome unknown": true, "linearization": true, "violates": false, "fault": false, "refused": false},
		"jepsen":  {"operation, ok": true, "refused": true, "violates": true, "minimal evidence": true, "fault": true, "highest token": false, "nothing can come next": true},
		"fenced":  {"lease: held for certain": true, "write refused": true, "violates": false, "belief, derived": false},
	} {
		page := svg(t, samples()[name])
		for text, has := range want {
			if strings.Contains(page, ">"+text+"</text>") != has {
				t.Errorf("the legend of %s has %q: %t, want %t", name, text, !has, has)
			}
		}
	}
}

func TestWithoutTimesTheAxisCountsEvents(t *testing.T) {
	page := htmlOf(t, untimed())
	for _, want := range []string{"The history has no times: the axis counts its events.", `outcome unknown; from event 4"`, `ok; event 1 to 2"`, ">3</text>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestLateClocksCountFromTheirStart: 30 days after its zero, seconds are still
// told apart.
func TestLateClocksCountFromTheirStart(t *testing.T) {
	p := untimed()
	p.Unit = evidence.Nanoseconds
	const late = 30 * 24 * 3600 * sec
	for i := range p.Resources[0].Operations {
		op := &p.Resources[0].Operations[i]
		op.Call = late + op.Call*sec
		if op.Return != evidence.Unbounded {
			op.Return = late + op.Return*sec
		}
	}
	page := svg(t, p)
	if !strings.Contains(page, "The axis counts from 2591999.92 s of the history.") || !strings.Contains(page, ">2.0 s</text>") {
		t.Error("the axis does not count from the start of what is drawn")
	}
}

func TestAnyInstantsCanBeDrawn(t *testing.T) {
	far := evidence.Unbounded - 1
	for name, at := range map[string][2]int64{"one instant": {5, 5}, "all of time": {-far, far}, "the end of it": {far - 1, far}, "zero": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			p := evidence.Page{Verdict: evidence.Violated, Resources: []evidence.Resource{{
				Tenures:    []evidence.Tenure{{Who: "a", May: span(-evidence.Unbounded, evidence.Unbounded), Must: span(at[1], at[0])}},
				Beliefs:    []evidence.Belief{{Who: "a", Span: span(at[0], evidence.Unbounded)}},
				Operations: []evidence.Operation{{Call: at[0], Return: at[1], Violates: true}},
				Highest:    []evidence.Step{{At: at[0], Token: 1<<64 - 1}},
			}}}
			standsAlone(t, htmlOf(t, p))
			standsAlone(t, svg(t, p))
		})
	}
}

// TestIdentifiersAreUnique: within a page, so that links and the panel find
// what they name.
func TestIdentifiersAreUnique(t *testing.T) {
	for name, p := range samples() {
		seen := make(map[string]int)
		for _, e := range parse(t, htmlOf(t, p)) {
			if id := e.attr["id"]; id != "" {
				seen[id]++
			}
		}
		for _, id := range slices.Sorted(maps.Keys(seen)) {
			if seen[id] > 1 {
				t.Errorf("%s: %d elements are %q", name, seen[id], id)
			}
		}
	}
}

func BenchmarkWriteHTML(b *testing.B) {
	for _, n := range []int{100, 2_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			p := many(n)
			for b.Loop() {
				if err := evidence.WriteHTML(io.Discard, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
