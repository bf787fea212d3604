package bench

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what was measured of one library.
type result struct {
	resigned, killed []time.Duration
	believers        int
}

// table has a row for each library.
func table(results map[string]*result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tafter resign: median\tp99\trounds\tafter kill: median\tp99\trounds\ttwo believers")
	for _, name := range measured {
		r := results[name]
		fmt.Fprintf(w, "%s\t%v\t%v\t%d\t%v\t%v\t%d\t%d\n", name,
			shown(quantile(r.resigned, 0.5)), shown(quantile(r.resigned, 0.99)), len(r.resigned),
			shown(quantile(r.killed, 0.5)), shown(quantile(r.killed, 0.99)), len(r.killed), r.believers)
	}
	w.Flush()
	return b.String()
}

func shown(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// quantile is the least of all that is no less than the share q of them: 0 of none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
}

// overlaps counts the intervals that began while one from before went on.
func overlaps(all []interval) (n int) {
	all = slices.SortedFunc(slices.Values(all), func(a, b interval) int { return int(a.from - b.from) })
	end := time.Duration(math.MinInt64)
	for _, i := range all {
		if i.from < end {
			n++
		}
		end = max(end, i.to)
	}
	return n
}

// load is what the machine has done since it started, in ticks.
type load struct{ busy, all float64 }

// loadNow is zero where there is no /proc.
func loadNow() (l load) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	// cpu user nice system idle iowait irq softirq steal ...
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 {
			continue
		}
		l.all += n
		if i != 4 && i != 5 {
			l.busy += n
		}
	}
	return l
}

// since is the share of all cores that was busy since then, in percent.
func (l load) since(then load) float64 {
	return 100 * (l.busy - then.busy) / max(l.all-then.all, 1)
}

// average is the load average over a minute.
func average() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
