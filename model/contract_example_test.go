package model_test

import (
	"fmt"
	"time"

	"fencepost/model"
)

// A store whose renewals set the expiry to now + TTL, also where that is
// earlier than before.
func ExampleContract() {
	const sec = int64(time.Second)
	a, b := model.Owner{Node: 1, Seq: 1}, model.Owner{Node: 2, Seq: 1}
	c := model.NewContract(model.Promise{})
	for _, turn := range []struct {
		q model.Ask
		a model.Said
	}{
		{model.Ask{Op: model.OpAcquire, Owner: a, TTL: 10 * sec, At: 0},
			model.Said{Code: model.CodeGranted, Token: 1, Holder: a, TTL: 10 * sec}},
		{model.Ask{Op: model.OpRenew, Owner: a, Token: 1, TTL: 2 * sec, At: 1 * sec},
			model.Said{Code: model.CodeGranted, Token: 1, Holder: a, TTL: 2 * sec}},
		{model.Ask{Op: model.OpAcquire, Owner: b, TTL: 10 * sec, At: 4 * sec},
			model.Said{Code: model.CodeGranted, Token: 2, Holder: b, TTL: 10 * sec}},
	} {
		if breach, broken := c.Judge(turn.q, turn.a); broken {
			fmt.Println(breach.Rule)
			fmt.Println("want:", breach.Want)
		}
	}
	// Output:
	// never-shortens
	// want: refused as held: a holds it under token 1 for another 6s, as granted before the shorter TTL
}

func ExampleRule_Says() {
	fmt.Println(model.RuleRenewHolder.Says())
	// Output:
	// A renewal by anybody but the holder is refused as lost, and changes nothing. Compare the holder in the same atomic step that extends, or a former leader revives, or keeps alive, what is another's by now.
}
