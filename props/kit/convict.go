package kit

import (
	"fmt"
	"slices"
)

// Convict is how the check of that name convicts a subject that is wrong, for
// tests that a check can fail. The error says that there is no such check, or
// that the subject passes. A check in real time is asked up to three times: on a
// machine that is too slow to look in time the fault may not show.
func Convict(checks []Check, name string) (*Failure, error) {
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		var names []string
		for _, c := range checks {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("there is no check %q, only %q", name, names)
	}
	var out Outcome
	for range 3 {
		if out = Guard(checks[i].Run); out.Failure != nil {
			return out.Failure, nil
		}
	}
	return nil, fmt.Errorf("%s does not convict: it holds: %q, skipped: %q, unknown: %q", name, out.Covered, out.Skipped, out.Unknown)
}
