package timeline

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fencepost/model"
	"fencepost/props/sim"
)

// drawn is a timeline taken apart by the columns that layOut says: rows without
// headers, each as its left part and its sentence.
type drawn struct {
	left   [][]rune
	prose  []string
	legend string
}

func draw(t *testing.T, events []model.Event, o Options) (drawn, []moment) {
	t.Helper()
	var b strings.Builder
	if err := Render(&b, events, sim.Names(), o); err != nil {
		t.Fatal(err)
	}
	moments, nodes := tell(events, sim.Names(), &o)
	p := printer{o: &o, g: &unicodeGlyphs, names: sim.Names(), nodes: nodes}
	p.layOut(moments)
	body, legend, _ := strings.Cut(b.String(), "\n\n")
	d := drawn{legend: legend}
	banner := false
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		row := []rune(line)
		if len(row) > o.width() {
			t.Fatalf("a line of %d columns, the limit is %d\n%s", len(row), o.width(), b.String())
		}
		switch rule := strings.HasPrefix(line, "━━━") || strings.HasPrefix(line, "==="); {
		case rule && strings.Contains(line, "VIOLATED"):
			banner = true
			continue
		case rule:
			banner = false
			continue
		case banner:
			continue
		}
		if len(row) <= p.prose { // a header: rows of moments all have a sentence
			continue
		}
		d.left = append(d.left, row[:p.prose])
		d.prose = append(d.prose, string(row[p.prose:]))
	}
	return d, moments
}

// anyTrace is a run that uses what there is to draw.
func anyTrace(t *testing.T, seed uint64) []model.Event {
	t.Helper()
	src := rand.NewPCG(seed, 11)
	profile := sim.Raw()
	var trace sim.Trace
	w, err := sim.NewWorld(sim.RandomConfig(src), sim.Builtin(), sim.Options{Trace: &trace})
	if err != nil {
		t.Fatal(err)
	}
	sim.Generate(src, &profile, &w, 80, nil)
	return trace.Events
}

// Where a sentence needs several lines they hang in its own column, and beside
// them the lanes go on.
func TestSentencesStayInTheirColumn(t *testing.T) {
	wrapped := 0
	for seed := range uint64(40) {
		events := anyTrace(t, seed)
		for _, o := range []Options{{Width: 60}, {Width: 60, ASCII: true}, {Width: 72}, {}} {
			lanes := "║█▓░▌│┊ "
			if o.ASCII {
				lanes = "H#%.f|: "
			}
			d, moments := draw(t, events, o)
			k := 0
			for _, m := range moments {
				text := m.text
				if m.folded {
					text = "... " + text
				}
				want := strings.ReplaceAll(text, " ", "")
				if o.ASCII {
					want = strings.ReplaceAll(want, "µ", "?")
				}
				got := ""
				for first := k; k < len(d.prose) && len(got) < len(want); k++ {
					left, prose := d.left[k], d.prose[k]
					if hangs := strings.HasPrefix(prose, "  ") && prose[2] != ' '; hangs != (k > first) || !hangs && prose[0] == ' ' {
						t.Fatalf("seed %d, %+v: %q is at the wrong column of %q", seed, o, prose, text)
					}
					if gap := left[len(left)-2:]; string(gap) != "  " {
						t.Fatalf("seed %d, %+v: %q runs into %q", seed, o, string(left), prose)
					}
					if k > first {
						wrapped++
						if strings.Trim(string(left), lanes) != "" {
							t.Fatalf("seed %d, %+v: beside %q there is %q, not lanes alone", seed, o, prose, string(left))
						}
					}
					got += strings.ReplaceAll(prose, " ", "")
				}
				if got != want {
					t.Fatalf("seed %d, %+v: the sentence is %q, want %q", seed, o, got, want)
				}
			}
			if k != len(d.prose) {
				t.Fatalf("seed %d, %+v: %q belongs to no moment", seed, o, d.prose[k:])
			}
		}
	}
	if wrapped < 500 {
		t.Errorf("only %d lines were wrapped: nothing was checked", wrapped)
	}
}

// Of how bars begin and end the legend explains what occurs, and only that.
func TestTheLegendExplainsWhatOccurs(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(40) {
		events := anyTrace(t, seed)
		last := events[len(events)-1]
		for _, o := range []Options{{}, {Violation: model.Violation{Invariant: model.Availability, At: last.At, Action: last.Action}}, {ASCII: true}} {
			items := map[rune]string{'╥': "╥ begins", '╨': "╨ ends", '▄': "▄ begins", '▀': "▀ ends", '►': "► at the left: the violation"}
			bodies := map[rune]string{'║': "║ tenure", '█': "█ leads", '▓': "▓ leads, standing still", '░': "░ stands still", '▌': "▌ waits", '╳': "╳ "}
			if o.ASCII {
				items = map[rune]string{'T': "T begins", 'U': "U ends", '*': "* begins", '"': `" ends`}
				bodies = map[rune]string{'H': "H tenure", '#': "# leads", '%': "% leads, standing still", '.': ". stands still", 'f': "f waits", 'X': "X crashes"}
			}
			d, _ := draw(t, events, o)
			var left []rune
			for _, row := range d.left {
				left = append(left, row[0])
				for x, r := range row[1:] {
					if r != '►' && !(r == '.' && x < 12) { // heads of arrows; times
						left = append(left, r)
					}
				}
			}
			for r, item := range items {
				occurs := slices.Contains(left, r)
				if occurs != strings.Contains(d.legend, item) {
					t.Fatalf("seed %d, %+v: that %c occurs is %v, but the legend is\n%s", seed, o, r, occurs, d.legend)
				}
				if occurs {
					seen[item]++
				}
			}
			for r, item := range bodies {
				if slices.Contains(left, r) && !strings.Contains(d.legend, item) {
					t.Fatalf("seed %d, %+v: %c occurs, but the legend is\n%s", seed, o, r, d.legend)
				}
			}
		}
	}
	if len(seen) != 9 {
		t.Errorf("only %v occurred", seen)
	}
}

func TestSymbolsOfBarsDiffer(t *testing.T) {
	for _, g := range []*glyphs{&unicodeGlyphs, &asciiGlyphs} {
		symbols := []rune{g.tenure, g.tenureFrom, g.tenureTo, g.belief, g.beliefFrom, g.beliefTo, g.fencing, g.paused, g.pausedBelief, g.life, g.skip, g.crash, g.cross}
		slices.Sort(symbols)
		if n := len(slices.Compact(slices.Clone(symbols))); n != len(symbols) {
			t.Errorf("of %q two are the same", string(symbols))
		}
	}
}

func TestTheRuleOverAViolationIsAsWideAsTheTimeline(t *testing.T) {
	for _, c := range []struct {
		at             int64
		width, columns int // of the rule below; 0 where nothing follows
		want           string
	}{
		{0, 60, 60, "━━━ VIOLATED: belief-implies-ownership at 0s " + strings.Repeat("━", 60-45)},
		{0, 0, 100, "━━━ VIOLATED: belief-implies-ownership at 0s " + strings.Repeat("━", 100-45)},
		{math.MaxInt64 - 775807, 60, 60, "━━━ VIOLATED: belief-implies-ownership at " + strings.Repeat("━", 60-42) + "\n    2562047h47m16.854s"}, // one column too long
		{math.MaxInt64, 60, 0, "━━━ VIOLATED: belief-implies-ownership at " + strings.Repeat("━", 60-42) + "\n    2562047h47m16.854775807s"},
	} {
		var b strings.Builder
		events := []model.Event{{At: c.at, Kind: model.KindHeal, Node: 3}}
		if c.columns > 0 {
			events = append(events, model.Event{At: c.at + 1, Kind: model.KindHeal, Node: 3})
		}
		v := model.Violation{Invariant: model.BeliefOwnership, At: c.at, Node: 3, Token: 1}
		if err := Render(&b, events, sim.Names(), Options{Width: c.width, Violation: v}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "\n"+c.want+"\n    C1 acts as leader") {
			t.Errorf("at width %d there is no\n%s\nin\n%s", c.width, c.want, b.String())
		}
		if c.columns > 0 && !strings.Contains(b.String(), "\n"+strings.Repeat("━", c.columns)+"\n") {
			t.Errorf("at width %d the rule below is not as wide\n%s", c.width, b.String())
		}
	}
}
