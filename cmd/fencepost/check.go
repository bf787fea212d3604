package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"fencepost/linearizability"
)

type checkCmd struct {
	Files   []string      `arg:"" help:"History files; - reads standard input."`
	Model   string        `help:"What the history is of: fencepost (leases and fenced storages together), lease, storage, register(INIT), cas-register(INIT), mutex, owner-mutex, kv." default:"fencepost"`
	TTL     time.Duration `help:"TTL of a lease whose events carry none."`
	Drift   float64       `help:"Bound on the rate error of the store's clock against the recorder's, such as 0.0002."`
	Ignore  []string      `help:"Operations to leave out."`
	Timeout time.Duration `help:"Time for one file; a check that runs out of it says unknown." default:"1m"`
	HTML    string        `help:"Write a picture of the failing part to this file." type:"path"`
	JSON    bool          `help:"Print one JSON object a file instead of text."`
}

// Help is shown by check --help.
func (checkCmd) Help() string {
	return `Reads each history, whatever its format (fencepost's JSON lines, Jepsen's EDN,
elle-cli's JSON, porcupine's logs: told by content), and looks for an order of its
operations, with their times, that explains every answer. Beliefs, tokens and writes
are judged beside that, and each finding says whom to blame.

Exit code 0: every history holds. 1: one is violated. 2: one is unknown, or cannot
be read; the message names file, line and field.`
}

// Run is check.
func (c *checkCmd) Run(e *env) error {
	model, err := linearizability.ParseModel(c.Model)
	if err != nil {
		return err
	}
	if !(c.Drift >= 0 && c.Drift < 1) || c.TTL < 0 || c.Timeout <= 0 {
		return fmt.Errorf("--drift must be in [0, 1), --ttl not negative and --timeout above 0")
	}
	if c.HTML != "" && len(c.Files) > 1 {
		return fmt.Errorf("--html draws one history, and %d files were given", len(c.Files))
	}
	o := linearizability.Options{Model: model, TTL: c.TTL, Drift: int64(math.Round(c.Drift * 1e9)), Ignore: c.Ignore}
	for _, file := range c.Files {
		if err := c.one(e, file, o); err != nil {
			// The other files still count.
			e.worse(exitUnknown)
			if c.JSON {
				json.NewEncoder(e.out).Encode(map[string]string{"file": file, "verdict": "unknown", "error": err.Error()})
			} else {
				fmt.Fprintln(e.err, "fencepost:", err)
			}
		}
	}
	return nil
}

func (c *checkCmd) one(e *env, file string, o linearizability.Options) error {
	var h linearizability.History
	var err error
	if file == "-" {
		h, err = linearizability.Read(os.Stdin, "standard input")
	} else {
		h, err = linearizability.ReadFile(file)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	v, err := linearizability.Check(ctx, h, o)
	if err != nil {
		return err
	}
	switch v.Result {
	case linearizability.Violated:
		e.worse(exitViolated)
	case linearizability.Unknown:
		e.worse(exitUnknown)
	}
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(w io.Writer) error { return v.WriteHTML(ctx, w) }); err != nil {
			return err
		}
		if !c.JSON {
			defer e.printf("drawn in %s\n", c.HTML)
		}
	}
	if c.JSON {
		return json.NewEncoder(e.out).Encode(v)
	}
	e.printf("%v\n", v)
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}
