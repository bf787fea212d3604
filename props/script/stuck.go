package script

import (
	"slices"

	"fencepost/model"
	"fencepost/props/kit"
)

// stuck tells of a call that does not return: see [kit.Watch.Tell].
func (p *player) stuck(within string) *kit.Failure {
	f := &kit.Failure{Says: Returns, Read: "go doc fencepost/impl/lease Store", Log: p.lab.Log()}
	if len(p.lines) == 0 {
		return f
	}
	n := len(p.lines) - 1
	lines := slices.Clone(p.lines[:n])
	if last := &p.lines[n]; within == "" {
		// The call may return yet, and its answer be taken down.
		lines = append(lines, Line{Step: last.Step, At: last.At, Token: last.Token, Answer: "no answer"})
		f.What = Said(last.Step)
	} else {
		lines = append(lines, *last)
	}
	for i := range lines {
		lines[i].describe()
	}
	r := Result{Lines: lines}
	if within == "" {
		r.Breach = &model.Breach{Rule: model.RuleAnswers, Want: "an answer, at once"}
	}
	if f.Story = Story(r); within != "" {
		f.Story = append(f.Story, within+" does not return  ◄")
	}
	return f
}

// Returns is what the rule says that a store breaks which is waited for.
const Returns = "A call answers at once with what is the case. A store refuses a lease that is held with a *lease.HeldError, and does not wait for it: " +
	"to wait is the client's part. The clock of the check stands still during a call, and nothing but an answer ends it here, as a caller's context does in production."
