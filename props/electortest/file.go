package electortest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// fileKind is what a plan's file says it is.
const fileKind = "elector-plan"

// Bounds of a plan that is read: it may come from anywhere, and its time is
// played.
const (
	maxFile    = 1 << 20
	maxClients = 8
	maxFates   = 10_000
	maxTTLs    = 1000 // that any of its durations is long
)

// planJSON is a plan as a file.
type planJSON struct {
	Kind    string       `json:"kind"`
	Version int          `json:"version"`
	Rule    string       `json:"rule,omitempty"` // that it breaks
	Config  lease.Config `json:"config"`
	Clients int          `json:"clients"`
	Store   storeRate    `json:"store"`
	Linger  duration     `json:"linger,omitempty"`
	Until   duration     `json:"until"`
	Calls   []fateJSON   `json:"calls"`
}

type fateJSON struct {
	Client  int      `json:"client"`
	Call    int      `json:"call"`
	Request duration `json:"request,omitempty"`
	Answer  duration `json:"answer,omitempty"`
	Lost    lost     `json:"lost,omitempty"`
	Hang    bool     `json:"hang,omitempty"`
	Deaf    bool     `json:"deaf,omitempty"`
	Copy    duration `json:"copy,omitempty"`
	Before  upset    `json:"before,omitempty"`
	Percent int      `json:"percent,omitempty"`
}

// duration is a string such as "1.5s" in JSON.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"1.5s\"", b)
	}
	*d = duration(v)
	return nil
}

// file is p as a file that [Replay] takes.
func (p plan) file(o Options, rule string) *kit.File {
	j := planJSON{
		Kind: fileKind, Version: 1, Rule: rule, Config: o.Config, Clients: p.clients, Store: p.store,
		Linger: duration(p.linger), Until: duration(p.until), Calls: []fateJSON{},
	}
	for _, f := range p.fates {
		j.Calls = append(j.Calls, fateJSON{
			f.client, f.call, duration(f.Request), duration(f.Answer), f.Lost, f.Hang, f.Deaf, duration(f.Copy), f.Before, f.Percent,
		})
	}
	data, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		panic(err) // there is nothing in it that JSON cannot say
	}
	f := kit.NewFile(strings.ReplaceAll(rule, "/", "-"), "json", append(data, '\n'))
	return &f
}

// FileError says what is wrong with a plan's file.
type FileError struct {
	Line   int    // 0: not known
	Field  string // empty: not known
	Reason string
}

func (e *FileError) Error() string {
	s := ""
	if e.Line > 0 {
		s += fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Reason
}

// IsPlan reports whether data looks like a file of [kit.Failure], to tell it
// from those of other checks.
func IsPlan(data []byte) bool {
	var head struct {
		Kind string `json:"kind"`
	}
	return len(data) <= maxFile && json.Unmarshal(data, &head) == nil && head.Kind == fileKind
}

// Replay is the check that plays the plan in data, as found in the File of a
// failure, with the timing that is in it. The error is a *[FileError], or that
// of [Options.Validate].
func Replay(data []byte, start func(Env) Candidate, o Options) (Check, error) {
	p, cfg, err := readPlan(data)
	if err != nil {
		return Check{}, err
	}
	o.Config = cfg
	if err := o.Validate(); err != nil {
		return Check{}, err
	}
	o.Fences = o.Fences || cfg.Barrier
	o = o.withDefaults()
	return Check{Name: "replay", Run: func(t *testing.T) kit.Outcome {
		r := p.play(t, start, o)
		switch {
		case r.unknown != "":
			return kit.Outcome{Unknown: r.unknown}
		case r.breach == nil:
			return kit.Outcome{Covered: fmt.Sprintf("terms: %d, calls: %d", r.terms, r.calls)}
		}
		f := ruleOf(r.breach.kind)
		f.What, f.Story, f.More, f.Log = r.breach.what, r.tale.story(), r.breach.more, r.tale.log.String()
		return kit.Outcome{Failure: f}
	}}, nil
}

func readPlan(data []byte) (p plan, cfg lease.Config, err error) {
	if len(data) > maxFile {
		return p, cfg, &FileError{Reason: fmt.Sprintf("%d bytes are too many for a plan: at most %d", len(data), maxFile)}
	}
	var j planJSON
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return p, cfg, fileError(data, dec.InputOffset(), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return p, cfg, fileError(data, dec.InputOffset(), errors.New("something follows the plan"))
	}
	if err := j.check(); err != nil {
		return p, cfg, err
	}
	p = plan{clients: j.Clients, store: j.Store, linger: time.Duration(j.Linger), until: time.Duration(j.Until)}
	for _, f := range j.Calls {
		p.fates = append(p.fates, placed{f.Client, f.Call, fate{
			time.Duration(f.Request), time.Duration(f.Answer), f.Lost, f.Hang, f.Deaf, time.Duration(f.Copy), f.Before, f.Percent,
		}})
	}
	return p, j.Config, nil
}

// check returns a *FileError for the first field that makes no sense.
func (j planJSON) check() error {
	bad := func(field, format string, args ...any) error {
		return &FileError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	if err := j.Config.Validate(); err != nil {
		return bad("config", "%v", err)
	}
	if err := (Options{Config: j.Config}).Validate(); err != nil {
		return bad("config", "%v", err)
	}
	longest := maxTTLs * j.Config.TTL
	between := func(field string, d duration) error {
		if d < 0 || time.Duration(d) > longest {
			return bad(field, "%v is not between 0 and %d TTLs, %v", time.Duration(d), maxTTLs, longest)
		}
		return nil
	}
	switch {
	case j.Kind != fileKind:
		return bad("kind", "%q is not %q", j.Kind, fileKind)
	case j.Version != 1:
		return bad("version", "%d is not 1, the only one there is", j.Version)
	case j.Clients < 1 || j.Clients > maxClients:
		return bad("clients", "%d is not between 1 and %d", j.Clients, maxClients)
	case !slices.Contains([]storeRate{rateTrue, rateFast, rateSlow}, j.Store):
		return bad("store", "%q is not %q, %q or %q", j.Store, rateTrue, rateFast, rateSlow)
	case len(j.Calls) > maxFates:
		return bad("calls", "%d are too many: at most %d", len(j.Calls), maxFates)
	}
	if err := firstError(between("linger", j.Linger), between("until", j.Until)); err != nil {
		return err
	}
	for i, f := range j.Calls {
		at := fmt.Sprintf("calls[%d].", i)
		switch {
		case f.Client < 0 || f.Client >= j.Clients:
			return bad(at+"client", "%d is not below the number of clients, %d", f.Client, j.Clients)
		case f.Call < 0:
			return bad(at+"call", "%d is negative", f.Call)
		case !slices.Contains([]lost{"", lostRequest, lostAnswer}, f.Lost):
			return bad(at+"lost", "%q is not %q or %q", f.Lost, lostRequest, lostAnswer)
		case !slices.Contains([]upset{"", upsetDelete, upsetRestart, upsetRival}, f.Before):
			return bad(at+"before", "%q is not %q, %q or %q", f.Before, upsetDelete, upsetRestart, upsetRival)
		case f.Percent < 0 || f.Percent > 100:
			return bad(at+"percent", "%d is not between 0 and 100", f.Percent)
		}
		if err := firstError(between(at+"request", f.Request), between(at+"answer", f.Answer), between(at+"copy", f.Copy)); err != nil {
			return err
		}
	}
	return nil
}

// firstError is the first of errs that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// fileError places an error of package json in data. Some have an offset,
// others quote what they are about, which is then the first of its kind.
func fileError(data []byte, offset int64, err error) error {
	out := &FileError{Reason: strings.TrimPrefix(err.Error(), "json: ")}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset, out.Field = mismatch.Offset, mismatch.Field
		out.Reason = fmt.Sprintf("%s where %v was expected", mismatch.Value, mismatch.Type)
	} else if _, rest, ok := strings.Cut(out.Reason, `"`); ok {
		quoted, _, _ := strings.Cut(rest, `"`)
		if i := bytes.Index(data, []byte(`"`+quoted+`"`)); i >= 0 {
			offset = int64(i)
		}
	}
	out.Line = 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
	return out
}
