package evidence_test

import (
	"bytes"
	"fmt"
	"strings"

	"fencepost/linearizability/evidence"
)

// twoHolders is a lock that two clients got at once.
func twoHolders() evidence.Page {
	return evidence.Page{
		Title: "lock.jsonl", Verdict: evidence.Violated, Model: "mutex", Blame: evidence.Store,
		Reason:  "b acquires the lock while a has it.",
		Command: "fencepost check --model mutex lock.jsonl",
		Findings: []evidence.Finding{{
			Check: "linearizability", Text: "two acquires succeed, with no release between", Blame: evidence.Store, Violates: true, Ops: []int{1, 2},
			Lines: []evidence.Line{{Number: 2, Text: `{"type":"ok","f":"acquire","process":0}`}, {Number: 4, Text: `{"type":"ok","f":"acquire","process":1}`}},
		}},
		Resources: []evidence.Resource{{
			Name: "lock", Verdict: evidence.Violated,
			Operations: []evidence.Operation{
				{ID: 1, Process: "a", Call: 0, Return: 4e6, Label: "acquire", Lines: []int{1, 2}, Evidence: true},
				{ID: 2, Process: "b", Call: 9e6, Return: 12e6, Label: "acquire", Lines: []int{3, 4}, Evidence: true, Violates: true},
			},
			Order: evidence.Linearization{
				Start: "free", Placed: []evidence.Placed{{Op: 1, State: "held by a"}},
				Partial: true, Stuck: 2, Tried: []evidence.Attempt{{Op: 2, Why: "held by a"}},
			},
		}},
	}
}

func ExampleWriteHTML() {
	var page bytes.Buffer
	if err := evidence.WriteHTML(&page, twoHolders()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(page.String(), `aria-label="b: acquire; ok, violates; 9 ms to 12 ms (3 ms); lines 3, 4"`))
	fmt.Println(strings.Contains(page.String(), "Nothing can come next."))
	// Output:
	// true
	// true
}

func ExampleWriteSVG() {
	var picture bytes.Buffer
	err := evidence.WriteSVG(&picture, twoHolders())
	fmt.Println(strings.HasPrefix(picture.String(), "<svg xmlns="), err)

	// What contradicts itself is not drawn.
	p := twoHolders()
	p.Findings[0].Ops = []int{3}
	fmt.Println(evidence.WriteSVG(&picture, p))
	// Output:
	// true <nil>
	// evidence: finding "linearizability" names operation 3, which no resource has
}
