package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/storagetest"
	"fencepost/props/storetest"
)

type storesCmd struct {
	Names []string `arg:"" optional:"" help:"Show how these are convicted; without a name all are tried, and listed."`
	List  bool     `help:"List them and the public failures they stand for, and try none."`
	JSON  bool     `help:"Print one JSON object a row: name, kind, convicted, check, rule, lines, breaks, seen."`
}

// Help is shown by stores --help.
func (storesCmd) Help() string {
	return `The conformance kit (props.TestStore, props.TestStorage) checks lease stores and
fenced storages that people wrote themselves. These are wrong ones, each with one
fault that was seen in public; each must be convicted by the check that it names.
With a name: what the author of that store would read.

Exit code 0: all are convicted. 1: one is not. 2: there is no such store.`
}

// wrong is a wrong store or storage, and the check that is to convict it.
type wrong struct {
	name, kind, breaks, seen, check string
	checks                          func() []kit.Check
}

func wrongs() (all []wrong) {
	effort := kit.Effort{Seed: 1}
	for _, w := range mutant.WrongStores() {
		all = append(all, wrong{w.Name, "store", w.Breaks, w.Seen, w.Convicted,
			func() []kit.Check { return storetest.Checks(w.Open, w.Options, effort) }})
	}
	for _, w := range mutant.WrongStorages() {
		all = append(all, wrong{w.Name, "storage", w.Breaks, w.Seen, w.Convicted,
			func() []kit.Check { return storagetest.Checks(w.Open, storagetest.Options{}, effort) }})
	}
	return all
}

// try runs the check that is to convict w.
func (w wrong) try() (*kit.Failure, error) {
	checks := w.checks()
	i := slices.IndexFunc(checks, func(c kit.Check) bool { return c.Name == w.check })
	if i < 0 {
		return nil, fmt.Errorf("%s names the check %q, and there is none", w.name, w.check)
	}
	return checks[i].Run().Failure, nil
}

// storesJSON is one row.
type storesJSON struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"` // store or storage
	Convicted bool   `json:"convicted"`
	Check     string `json:"check"`
	Rule      string `json:"rule,omitempty"`
	Lines     int    `json:"lines,omitempty"` // of the counterexample
	Breaks    string `json:"breaks"`
	Seen      string `json:"seen"`
}

// Run is stores.
func (c *storesCmd) Run(e *env) error {
	if c.List && c.JSON {
		return errors.New("--list tries none, and prints text; without it --json prints a row of each")
	}
	all := wrongs()
	if len(c.Names) > 0 {
		chosen, err := find(all, c.Names)
		if err != nil {
			return err
		}
		all = chosen
	}
	if c.List {
		for _, w := range all {
			e.printf("%s (%s)\n  %s\n  Seen: %s\n  Convicted by: %s\n", w.name, w.kind, w.breaks, w.seen, w.check)
		}
		return nil
	}
	enc := json.NewEncoder(e.out)
	for i, w := range all {
		failure, err := w.try()
		if err != nil {
			return err
		}
		if failure == nil {
			e.worse(exitViolated)
		}
		switch {
		case c.JSON:
			row := storesJSON{Name: w.name, Kind: w.kind, Convicted: failure != nil, Check: w.check, Breaks: w.breaks, Seen: w.seen}
			if failure != nil {
				row.Rule, row.Lines = failure.Rule, len(failure.Story)
			}
			if err := enc.Encode(row); err != nil {
				return err
			}
		case failure == nil:
			e.printf("%-8s %-36s MISSED by %s\n", w.kind, w.name, w.check)
		case len(c.Names) == 0:
			e.printf("%-8s %-36s %s\n", w.kind, w.name, w.check)
		default:
			if i > 0 {
				e.printf("\n")
			}
			e.printf("%s: %s\nSeen: %s.\nConvicted by %s:\n\n%s\n", w.name, w.breaks, w.seen, w.check, failure.Text(nil, ""))
		}
	}
	return nil
}

// find is those of all with the given names, in the order of the names. The
// error lists the names there are.
func find(all []wrong, names []string) (chosen []wrong, err error) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(w wrong) bool { return w.name == name })
		if i < 0 {
			var known []string
			for _, w := range all {
				known = append(known, w.name)
			}
			return nil, fmt.Errorf("there is no wrong store or storage %q; there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
