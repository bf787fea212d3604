package kit

import (
	"crypto/sha256"
	"fmt"
)

// Check is one thing to ask of the code under test.
type Check struct {
	// Name is that of the subtest, in groups: "rules/renew-only-by-the-holder".
	Name string
	// Run asks. It may be called again, and does the same again.
	Run func() Outcome
}

// Outcome is what a check came to: it holds if all but Covered is zero.
type Outcome struct {
	// Failure is how the code under test is wrong.
	Failure *Failure
	// Skipped is why the check does not apply.
	Skipped string
	// Unknown is why nothing is known: no pass.
	Unknown string
	// Covered is what a check that holds has looked at, in a few words.
	Covered string
}

// Failure is a conviction, in the words of the rule that was broken. All of it
// fits on a screen.
type Failure struct {
	// Rule is the name of the rule, such as "renew-only-by-the-holder".
	Rule string
	// Says is the rule in a sentence or two, and why it is one.
	Says string
	// What happened, in a sentence.
	What string
	// Story is the counterexample, at most about ten lines, its columns
	// aligned; the line that breaks the rule is marked with "◄".
	Story []string
	// More is what goes beyond that, such as a timeline; shown after the
	// story, and left out of short reports.
	More string
	// Read is where the rule is documented, such as "go doc
	// fencepost/impl/lease Store.Renew".
	Read string
	// Hint is for whom this is no fault: what to declare, and where.
	Hint string
	// File is the counterexample as a file, nil if the check itself is all of it.
	File *File
	// Log is the end of what the code under test logged.
	Log string
}

// File is a counterexample that replays.
type File struct {
	Name string // without a directory; equal contents have equal names
	Data []byte
}

// NewFile is a file whose name tells its contents from those of others, but for
// a chance of one in 2^32.
func NewFile(name, ext string, data []byte) File {
	sum := sha256.Sum256(data)
	return File{Name: fmt.Sprintf("%s-%x.%s", name, sum[:4], ext), Data: data}
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Rule, f.What) }
