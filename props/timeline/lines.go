package timeline

import (
	"fmt"
	"slices"
	"strings"

	"fencepost/model"
)

// Lines tells the story of events in sentences alone, one a line, with the
// instant first and the moment of o.Violation marked by "◄". Of more than
// o.MaxRows moments it tells those that bear most on the lease: what concerns
// neither the store nor a belief goes first, then what is only on its way, then
// routine, then what came first. What comes after the violation goes in any case.
// The error names an event that no run emits.
func Lines(events []model.Event, names *model.Names, o Options) ([]string, error) {
	if err := check(events); err != nil {
		return nil, err
	}
	if names == nil {
		names = &model.Names{}
	}
	most := o.MaxRows
	o.MaxRows = 0
	moments, _ := tell(events, names, &o)
	left := 0
	if most > 0 {
		moments, left = gist(moments, names, most)
	}
	c := clockFor(moments, 12)
	var lines []string
	if left > 0 {
		lines = append(lines, fmt.Sprintf("%*s  (%d more moments)", c.width, "", left))
	}
	for i := range moments {
		m := &moments[i]
		mark := ""
		if m.violated {
			mark = "  ◄"
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%*s  %s%s", c.width, c.format(m.at), m.text, mark), " "))
	}
	return lines, nil
}

// gist are at most n of the moments, and how many it leaves out.
func gist(moments []moment, names *model.Names, n int) ([]moment, int) {
	all := len(moments)
	if v := slices.IndexFunc(moments, func(m moment) bool { return m.violated }); v >= 0 {
		moments = moments[:v+1]
	}
	store := func(n model.Node) bool { return names[n].Role == model.RoleStore }
	var before [model.MaxNodes]lane
	bears := make([]bool, len(moments)) // on the lease
	for i := range moments {
		m := &moments[i]
		bears[i] = store(m.from) || store(m.to) || store(m.who)
		for n := range m.lanes {
			bears[i] = bears[i] || m.lanes[n].bar != before[n].bar
		}
		before = m.lanes
	}
	keep := make([]bool, len(moments))
	for i := range keep {
		keep[i] = true
	}
	kept := len(moments)
	for _, dull := range [...]func(i int) bool{
		func(i int) bool { return !bears[i] },
		func(i int) bool { return moments[i].stroke == strokeSent || moments[i].stroke == strokeNever },
		func(i int) bool { return moments[i].routine != notRoutine || moments[i].folded },
		func(int) bool { return true },
	} {
		for i := 0; i < len(moments) && kept > n; i++ {
			if keep[i] && !moments[i].violated && dull(i) {
				keep[i] = false
				kept--
			}
		}
	}
	var out []moment
	for i := range moments {
		if keep[i] {
			out = append(out, moments[i])
		}
	}
	return out, all - len(out)
}
