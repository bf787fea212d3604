package kit

import (
	"strings"
	"testing"
)

func TestConvictAsksTheCheckOfThatNameUpToThreeTimes(t *testing.T) {
	asked := 0
	from := func(attempt int) []Check { // it fails from then on
		asked = 0
		return []Check{
			{Name: "rules/other", Run: func() Outcome { return Outcome{Failure: &Failure{Rule: "other"}} }},
			{Name: "rules/lapse", Run: func() Outcome {
				if asked++; asked >= attempt {
					return Outcome{Failure: &Failure{Rule: "lapse"}}
				}
				return Outcome{Unknown: "too slow"}
			}},
		}
	}
	for _, attempt := range []int{1, 3} {
		f, err := Convict(from(attempt), "rules/lapse")
		if err != nil || f.Rule != "lapse" || asked != attempt {
			t.Errorf("one that fails the %d. time: %v, %v, asked %d times", attempt, f, err, asked)
		}
	}
	for name, want := range map[string]string{"rules/lapse": `unknown: "too slow"`, "rules/laps": `no check "rules/laps", only ["rules/other" "rules/lapse"]`} {
		if f, err := Convict(from(4), name); f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, f, err, want)
		}
	}
}
