package linearizability

import "testing"

// TestLeaseRulesOnRecordings: the verdicts were worked out by hand. Instants
// are in halves of a unit, so that 10.5 is 21: a TTL of 10 is 20.
func TestLeaseRulesOnRecordings(t *testing.T) {
	const granted = `{"time":0,"process":0,"type":"invoke","f":"acquire","key":"k","owner":"a","ttl":20}
{"time":0,"process":0,"type":"ok","f":"acquire","token":1}
`
	const delayed = `{"meta":{"version":1,"late":0,"lockDelay":10}}
` + granted
	lapsedAt := func(at string) string {
		return `{"time":` + at + `,"process":0,"type":"invoke","f":"renew","key":"k","owner":"a","token":1,"ttl":20}
{"time":` + at + `,"process":0,"type":"fail","f":"renew","error":"lapsed"}
`
	}
	renewed := func(at, ttl string) string {
		return `{"time":` + at + `,"process":0,"type":"invoke","f":"renew","key":"k","owner":"a","token":1,"ttl":` + ttl + `}
{"time":` + at + `,"process":0,"type":"ok","f":"renew"}
`
	}
	heldAt := func(at string) string {
		return `{"time":` + at + `,"process":1,"type":"invoke","f":"acquire","key":"k","owner":"b","ttl":20}
{"time":` + at + `,"process":1,"type":"fail","f":"acquire","error":"held","holder":"a"}
`
	}
	delayAt := func(at string) string {
		return `{"time":` + at + `,"process":1,"type":"invoke","f":"acquire","key":"k","owner":"b","ttl":20}
{"time":` + at + `,"process":1,"type":"fail","f":"acquire","error":"held"}
`
	}
	grantedAt := func(at string) string {
		return `{"time":` + at + `,"process":2,"type":"invoke","f":"acquire","key":"k","owner":"c","ttl":20}
{"time":` + at + `,"process":2,"type":"ok","f":"acquire","token":2}
`
	}
	const drift = `{"meta":{"version":1,"late":0,"drift":0.1}}
` + granted
	const exact = `{"meta":{"version":1,"late":0}}
` + granted
	verdicts(t, Model{Name: ModelLease}, []verdictCase{
		// At a tenth, 20 lapses in [18.2, 22.2].
		{"refused as held at 10.5", true, drift + heldAt("21")},
		{"renew refused as lapsed at 10", true, drift + lapsedAt("20")},
		{"renew refused as lapsed at 10, then refused as held at 10.5", false, drift + lapsedAt("20") + heldAt("21")},
		// With a delay of 10 after a lapse, a refusal that names nobody may be
		// the delay.
		{"granted at the end of the delay", true, delayed + delayAt("22") + grantedAt("30")},
		{"held at 11 and granted at 14", false, delayed + delayAt("22") + grantedAt("28")},
		{"a shorter renewal leaves the longer lease running", true, exact + renewed("2", "6") + heldAt("19")},
		{"and does not end it", false, exact + renewed("2", "6") + grantedAt("12")},
		{"nor lengthen it", false, exact + renewed("2", "6") + heldAt("20")},
	})
	// Without a lapse at 20 the lease is still held at 22, and the delay ends at
	// 32 at the soonest: late 2 and more make it so.
	const late = `{"meta":{"version":1,"late":4,"lockDelay":10}}
` + granted
	verdicts(t, Model{Name: ModelLease}, []verdictCase{
		{"held by name at 11 and granted at 14", false, late + heldAt("22") + grantedAt("28")},
		{"held by name at 11 and granted just after 16", true, late + heldAt("22") + grantedAt("33")},
	})
}
