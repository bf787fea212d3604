package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"fencepost/linearizability"
)

type convertCmd struct {
	From   string `help:"Format of the input, told by its content if not given." placeholder:"FORMAT"`
	To     string `help:"Format of the output (default: jsonl)." default:"jsonl" placeholder:"FORMAT"`
	Tuples bool   `help:"Write key and value as one independent tuple, [key value]."`

	Independent bool `help:"Values of the input are tuples of jepsen.independent: [key value]."`

	In  string `arg:"" help:"History file; - reads standard input."`
	Out string `arg:"" optional:"" help:"File to write; - or none writes to standard output." default:"-"`
}

// Help is shown by convert --help.
func (convertCmd) Help() string {
	return `Reads any format, told by content, and writes the one that is asked for:

    fencepost convert --to edn history.jsonl history.edn
    fencepost convert --independent jepsen.edn history.jsonl

Formats:
  jsonl       fencepost's own: one JSON object a line
  json        one JSON array, as elle-cli reads it
  edn         maps one after another, as Jepsen writes them
  edn-vector  the same in one vector; edn-list in one list (Knossos)
  ops         one operation a line, with the instants of its call and return
  log         lines of jepsen.util: process, type, f, value
  kv-log      porcupine's log of a key-value store: process, type, f, key, value

What the output's format cannot say is listed on standard error, and so is what
had to be changed to make the input a history. Only log and kv-log lose anything:
times, and what stands in no column of theirs.

Exit code 2: the input cannot be read; the message names file, line and field. An
output file is then left as it was.`
}

// Run is convert.
func (c *convertCmd) Run(e *env) error {
	r := linearizability.Reader{Independent: c.Independent}
	w := linearizability.Writer{Independent: c.Tuples}
	var err error
	if c.From != "" {
		if r.Format, err = linearizability.ParseFormat(c.From); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	if w.Format, err = linearizability.ParseFormat(c.To); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	in, name := io.Reader(os.Stdin), "standard input"
	if c.In != "-" {
		f, err := os.Open(c.In)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, c.In
	}
	s, err := r.Open(interruptible{e.ctx, in}, name)
	if err != nil {
		return err
	}
	var losses []linearizability.Loss
	write := func(out io.Writer) (err error) {
		losses, err = w.Convert(out, s)
		return err
	}
	if c.Out == "-" {
		err = write(e.out)
	} else {
		err = replaceFile(c.Out, write)
	}
	if err != nil {
		return err
	}
	for _, note := range s.Notes() {
		fmt.Fprintf(e.err, "fencepost: %s: note: %s\n", name, note)
	}
	for _, loss := range losses {
		fmt.Fprintf(e.err, "fencepost: %s: %v cannot say everything: %v\n", name, w.Format, loss)
	}
	return nil
}

// interruptible ends reading when its context does.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

// replaceFile writes a file beside path and renames it when it is complete, so
// that path is never half of a file, and may be what is being read. What is no
// regular file, such as a device, is written to directly.
func replaceFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeFile(path, write)
	}
	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: if nothing else is writing %s, remove it", err, path)
	}
	if err != nil {
		return err
	}
	err = write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		os.Remove(partial)
	}
	return err
}
