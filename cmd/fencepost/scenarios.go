package main

import (
	"fmt"

	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/scenario"
	"fencepost/props/sim"
	"fencepost/testdata"
)

type scenariosCmd struct {
	List scenariosListCmd `cmd:"" default:"1" help:"List the scenarios and what each shows (the default)."`
	Run  scenariosRunCmd  `cmd:"" help:"Run scenarios; all, unless names are given."`
}

type scenariosListCmd struct{}

// Run is scenarios list.
func (scenariosListCmd) Run(e *env) error {
	all, err := scenario.Load(testdata.Schedules)
	if err != nil {
		return err
	}
	for _, s := range all {
		e.printf("%s\n  %s\n  subject %s, expects %v\n", s.Name, s.Shows, s.Subject, s.Expect)
	}
	e.printf("\nRun one with: fencepost scenarios run NAME\n")
	return nil
}

type scenariosRunCmd struct {
	Names []string `arg:"" optional:"" help:"Names of scenarios."`
	ASCII bool     `help:"Draw with 7-bit characters only."`
}

// Run is scenarios run.
func (c *scenariosRunCmd) Run(e *env) error {
	all, err := scenario.Load(testdata.Schedules)
	if err != nil {
		return err
	}
	byName := map[string]*sim.Schedule{}
	for _, s := range all {
		byName[s.Name] = s
	}
	chosen := all
	if len(c.Names) > 0 {
		chosen = nil
		for _, name := range c.Names {
			s, ok := byName[name]
			if !ok {
				return fmt.Errorf("there is no scenario %q; \"fencepost scenarios\" lists them", name)
			}
			chosen = append(chosen, s)
		}
	}
	for _, s := range chosen {
		subject, err := mutant.Subject(s.Subject)
		if err != nil {
			return err
		}
		verdict := "as expected"
		if err := scenario.Check(s, subject); err != nil {
			verdict = "NOT as expected: " + err.Error()
			e.worse(exitViolated)
		}
		e.printf("%-40s %-32s expects %-26v %s\n", s.Name, s.Subject, s.Expect, verdict)
		if len(c.Names) > 0 {
			want := scenario.Judged(s)
			e.printf("%s\n\n", s.Shows)
			if err := e.draw(s, subject, want, judge.Run(s, subject, want), c.ASCII); err != nil {
				return err
			}
		}
	}
	return nil
}
