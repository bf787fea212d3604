package script

import (
	"fmt"

	"fencepost/impl/lease"
	"fencepost/model"
)

// Those two are seen before the contract is asked: no model knows Go's errors,
// panics and types.

// noAnswer is the breach of a store that fails with nobody disturbing it.
func noAnswer(s Step) *model.Breach {
	want := "an answer; refusals are errors of package lease, such as *lease.HeldError"
	switch {
	case s.Do == Get:
		want = "an answer; where nobody holds the lease, an observation without a holder and no error"
	case !s.Do.asks():
		want = "no error"
	}
	return &model.Breach{Rule: model.RuleAnswers, Want: want}
}

// wrongGrant is the breach of a grant of something else than was asked for.
func wrongGrant(resource string, holder lease.Holder) *model.Breach {
	return &model.Breach{Rule: model.RuleGrantHolder, Want: fmt.Sprintf("a grant that says for what and to whom it is: %q to %q", resource, holder)}
}
