package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/script"
)

// maxReplay bounds the file of a counterexample; its reader has the same bound,
// and says so.
const maxReplay = script.MaxFile + 1

// readReplay is the contents of a counterexample's file, and what to call it.
func readReplay(path string) (data []byte, name string, err error) {
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(os.Stdin, maxReplay))
		return data, "standard input", err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, path, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxReplay))
	return data, path, err
}

// kindOf is what a file says it is; schedules say nothing.
func kindOf(data []byte) string {
	var head struct{ Kind string }
	if json.Unmarshal(data, &head) != nil {
		return ""
	}
	return head.Kind
}

// script plays the script of somebody's own store against one that is
// right, and shows both beside each other.
func (c *replayCmd) script(e *env, name string, data []byte) error {
	s, err := script.Read(bytes.NewReader(data), name)
	if err != nil {
		return err
	}
	var r script.Result
	right := mutant.RightStore
	if s.Options.SteadyClock {
		right = mutant.SteadyStore
	}
	if err := kit.Attempt(func() { r = script.Run(right(s.Options.LockDelay), s.Options, s.Steps) }); err != nil {
		return err
	}
	if r.Breach != nil {
		return fmt.Errorf("%s: the built-in store does not fit the options in it: %s", name, r.Breach.Want)
	}
	if c.JSON {
		type line struct {
			Step     string `json:"step"`
			Answered string `json:"answered,omitempty"`
			Right    string `json:"right,omitempty"`
		}
		out := struct {
			File  string `json:"file"`
			Name  string `json:"name"`
			Test  string `json:"test,omitempty"`
			Shows string `json:"shows,omitempty"`
			Lines []line `json:"lines"`
		}{name, s.Name, s.Test, s.Shows, []line{}}
		for i := range s.Steps {
			l := line{Step: s.Steps[i].String(), Right: r.Lines[i].Answer}
			if i < len(s.Answers) {
				l.Answered = s.Answers[i]
			}
			out.Lines = append(out.Lines, l)
		}
		return json.NewEncoder(e.out).Encode(out)
	}
	e.printf("%s: %s\n\n%-24s  %-40s  %s\n", s.Name, s.Shows, "step", "the store that was checked", "a store that is right")
	for i := range s.Steps {
		answered := ""
		if i < len(s.Answers) {
			answered = s.Answers[i]
		}
		e.printf("%-24s  %-40s  %s\n", s.Steps[i], answered, r.Lines[i].Answer)
	}
	e.printf("\nOnly the test that wrote the file can run the store that was checked.\n")
	return nil
}
