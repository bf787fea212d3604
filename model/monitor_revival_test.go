package model_test

import (
	"math"
	"testing"

	"fencepost/model"
)

// reading is e at an instant of the store's clock.
func reading(local int64, e model.Event) model.Event {
	e.Local = local
	return e
}

func unanswered(op model.Op) model.Event { return handled(b, 1, op, model.CodeNone, 0) }

func TestALapsedTenureIsRevivedWhereThatIsPromised(t *testing.T) {
	broken := set(model.TokenMonotonicity)
	late, ever := model.MonitorConfig{Revival: 5}, model.MonitorConfig{Revival: math.MaxInt64}
	lapsed := []model.Event{granted(a, 1, 1), reading(10, lapses(a, 1, 1))}
	then := func(more ...model.Event) []model.Event { return append(lapsed[:2:2], more...) }
	check(t, []sequence{
		{name: "within the time", cfg: late, events: then(reading(15, renewed(a, 1, 1)), renewed(a, 1, 1))},
		{name: "too late", cfg: late, events: then(reading(16, renewed(a, 1, 1))), want: broken},
		{name: "for ever", cfg: ever, events: then(reading(math.MaxInt64, renewed(a, 1, 1)))},
		{name: "by a retry", cfg: late, events: then(reading(12, granted(a, 1, 1)))},
		{name: "not by another", cfg: ever, events: then(renewed(b, 1, 1)), want: broken},
		{name: "not by another incarnation", cfg: ever, events: then(renewed(a, 2, 1)), want: broken},
		{name: "not once somebody was granted", cfg: ever, events: then(granted(b, 1, 2), lapses(b, 1, 2), renewed(a, 1, 1)), want: broken},
		{name: "not after a release", cfg: ever, events: []model.Event{granted(a, 1, 1), released(a, 1, 1), renewed(a, 1, 1)}, want: broken},
		{name: "not after a deletion", cfg: ever, events: []model.Event{granted(a, 1, 1), deleted(), renewed(a, 1, 1)}, want: broken},
		{name: "a token that nobody was granted", cfg: ever, events: []model.Event{renewed(a, 1, 0)}, want: broken},
		{name: "after a restart that knows of its lapse", cfg: ever, events: then(storeRestarts(0, 0, 1), renewed(a, 1, 1))},
		{name: "after such a restart, where it is late alone", cfg: late, events: then(storeRestarts(0, 0, 1), reading(12, renewed(a, 1, 1))), want: broken},
		{name: "it lapses again", cfg: late, events: then(reading(12, renewed(a, 1, 1)), reading(20, lapses(a, 1, 1)), reading(26, renewed(a, 1, 1))), want: broken},
		{name: "whoever leads is held to the first lapse", cfg: ever, events: []model.Event{granted(a, 1, 1), leads(a, 1, 1), lapses(a, 1, 1)}, want: set(model.BeliefOwnership)},
		{name: "and owns what was revived", cfg: ever, events: then(renewed(a, 1, 1), leads(a, 1, 1))},
	})
}

func TestWhatWasNotAnsweredMayHaveBeenGranted(t *testing.T) {
	broken := set(model.TokenMonotonicity)
	acquire, renew := unanswered(model.OpAcquire), unanswered(model.OpRenew)
	check(t, []sequence{
		{name: "it may have taken a token", events: []model.Event{acquire, granted(a, 1, 2)}},
		{name: "or not", events: []model.Event{acquire, granted(a, 1, 1)}},
		{name: "two took two", events: []model.Event{acquire, acquire, granted(a, 1, 3)}},
		{name: "but one took no two", events: []model.Event{acquire, granted(a, 1, 3)}, want: broken},
		{name: "nor one that was granted before", events: []model.Event{granted(a, 1, 1), lapses(a, 1, 1), acquire, granted(b, 1, 1)}, want: broken},
		{name: "a token is taken once", events: []model.Event{acquire, granted(a, 1, 2), released(a, 1, 2), granted(b, 1, 4)}, want: broken},
		{name: "what may have been renewed has not lapsed", events: []model.Event{granted(a, 1, 1), renew, lapses(a, 1, 1), renewed(a, 1, 1)}},
		{name: "unless it was released", events: []model.Event{granted(a, 1, 1), renew, released(a, 1, 1), renewed(a, 1, 1)}, want: broken},
	})
}

func TestAPromiseSaysHowLongATenureMayOutliveItsTTL(t *testing.T) {
	for _, c := range []struct {
		p              model.Promise
		slack, revival int64
	}{
		{model.Promise{}, 0, 0},
		{model.Promise{Late: 3, Granularity: 10, MinTTL: 100, LockDelay: 1000}, 113, 113},
		{model.Promise{RenewAfterLapse: true}, 0, math.MaxInt64},
		{model.Promise{Late: math.MaxInt64, MinTTL: 1}, math.MaxInt64, math.MaxInt64},
	} {
		if s, r := c.p.Slack(), c.p.Revival(); s != c.slack || r != c.revival {
			t.Errorf("%+v: slack %d, revival %d, want %d and %d", c.p, s, r, c.slack, c.revival)
		}
	}
}
