package kit_test

import (
	"fmt"
	"strings"
	"testing"

	"fencepost/props/kit"
)

func TestConvictAsksTheCheckOfThatNameUpToThreeTimes(t *testing.T) {
	asked := 0
	from := func(attempt int) []kit.Check { // it fails from then on
		asked = 0
		return []kit.Check{
			{Name: "rules/other", Run: func() kit.Outcome { return kit.Outcome{Failure: &kit.Failure{Rule: "other"}} }},
			{Name: "rules/lapse", Run: func() kit.Outcome {
				if asked++; asked >= attempt {
					return kit.Outcome{Failure: &kit.Failure{Rule: "lapse"}}
				}
				return kit.Outcome{Unknown: "too slow"}
			}},
		}
	}
	for _, attempt := range []int{1, 3} {
		f, err := kit.Convict(from(attempt), "rules/lapse")
		if err != nil || f.Rule != "lapse" || asked != attempt {
			t.Errorf("one that fails the %d. time: %v, %v, asked %d times", attempt, f, err, asked)
		}
	}
	for name, want := range map[string]string{"rules/lapse": `unknown: "too slow"`, "rules/laps": `no check "rules/laps", only ["rules/other" "rules/lapse"]`} {
		if f, err := kit.Convict(from(4), name); f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, f, err, want)
		}
	}
}

func ExampleConvict() {
	checks := []kit.Check{{Name: "rules/lapse", Run: func() kit.Outcome {
		return kit.Outcome{Failure: &kit.Failure{Rule: "lapse", What: "granted to b at 4s, though a held it until 5s"}}
	}}}
	fmt.Println(kit.Convict(checks, "rules/lapse"))
	_, err := kit.Convict(checks, "rules/laps")
	fmt.Println(err)
	// Output:
	// lapse: granted to b at 4s, though a held it until 5s <nil>
	// there is no check "rules/laps", only ["rules/lapse"]
}
