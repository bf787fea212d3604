package timeline

import (
	"fmt"
	"time"
)

// clock writes instants in seconds, with as many decimals as it takes to tell
// them apart.
type clock struct {
	decimals, width int
}

// clockFor has milliseconds at most where they are enough to tell instants
// apart, and is no wider than limit.
func clockFor(moments []moment, limit int) clock {
	var c clock
	for i := range moments {
		at := moments[i].at
		for ms := time.Duration(at).Round(time.Millisecond).Milliseconds(); c.decimals < 3 && ms%int64(pow10(3-c.decimals)) != 0; {
			c.decimals++
		}
		if i > 0 && at != moments[i-1].at {
			for c.decimals < 9 && c.format(at) == c.format(moments[i-1].at) {
				c.decimals += 3 - c.decimals%3
			}
		}
	}
	for {
		c.width = 0
		for i := range moments {
			c.width = max(c.width, len(c.format(moments[i].at)))
		}
		if c.width <= limit || c.decimals == 0 {
			return c
		}
		c.decimals = (c.decimals - 1) / 3 * 3
	}
}

func (c clock) format(at int64) string {
	d := time.Duration(at)
	if c.decimals < 9 {
		d = d.Round(time.Second / time.Duration(pow10(c.decimals)))
	}
	sign, ns := "", uint64(d)
	if d < 0 {
		sign, ns = "-", -ns
	}
	const second = uint64(time.Second)
	if c.decimals == 0 {
		return fmt.Sprintf("%s%ds", sign, ns/second)
	}
	return fmt.Sprintf("%s%d.%0*ds", sign, ns/second, c.decimals, ns%second/pow10(9-c.decimals))
}

func pow10(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}
