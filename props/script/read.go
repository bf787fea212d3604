package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"fencepost/model"
	"fencepost/props/kit"
)

const (
	// MaxFile bounds a file, in bytes.
	MaxFile = 16 << 20
	// MaxSteps bounds the steps in one.
	MaxSteps = 100_000
)

// FileError says what is wrong in a file, and where.
type FileError struct {
	File   string
	Line   int // from 1
	Field  string
	Reason string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, e.Field, e.Reason)
}

// Read reads what [File] wrote; name stands for the file in errors, which are a
// *[FileError] unless r itself fails. Fields that it does not know are errors,
// and so are those that stand twice, in other letters, or as null. It reads at
// most [MaxFile] bytes and [MaxSteps] steps.
func Read(r io.Reader, name string) (Contents, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return Contents{}, fmt.Errorf("%s: %w", name, err)
	}
	d := reader{name: name, text: b, dec: json.NewDecoder(bytes.NewReader(b))}
	d.dec.UseNumber()
	if len(b) > MaxFile {
		return Contents{}, &FileError{File: name, Line: 1, Field: "file", Reason: fmt.Sprintf("is larger than %d MiB", MaxFile>>20)}
	}
	c, err := d.contents()
	if err != nil {
		return Contents{}, err
	}
	return c, nil
}

// reader takes the file token by token, so that an error can name its line,
// and nothing passes that encoding/json is lenient about.
type reader struct {
	name string
	text []byte
	dec  *json.Decoder
	at   int64 // where the last token starts
}

func (d *reader) fail(field, format string, args ...any) error {
	line := 1 + bytes.Count(d.text[:min(int(d.at), len(d.text))], []byte("\n"))
	return &FileError{File: d.name, Line: line, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// skip goes to where the next token starts.
func (d *reader) skip() {
	d.at = d.dec.InputOffset()
	for d.at < int64(len(d.text)) && strings.IndexByte(" \t\r\n,:", d.text[d.at]) >= 0 {
		d.at++
	}
}

// token is the next one, which belongs to field.
func (d *reader) token(field string) (json.Token, error) {
	d.skip()
	t, err := d.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, d.fail(field, "the file ends too early")
	case errors.As(err, &syntax):
		return nil, d.fail(field, "is no JSON: %v", syntax)
	case err != nil:
		return nil, d.fail(field, "%v", err)
	case t == nil:
		return nil, d.fail(field, "must not be null; leave it out")
	}
	return t, nil
}

func (d *reader) str(field string) (string, error) {
	t, err := d.token(field)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", d.fail(field, "must be a string")
	}
	return s, nil
}

func (d *reader) open(field string, delim json.Delim, what string) error {
	t, err := d.token(field)
	if err == nil && t != delim {
		err = d.fail(field, "must be %s", what)
	}
	return err
}

// object reads the fields of an object by each, which is told their names.
func (d *reader) object(field, prefix string, each func(name string) error) error {
	if err := d.open(field, '{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.dec.More() {
		t, err := d.token(field)
		if err != nil {
			return err
		}
		name := t.(string) // or the decoder had failed
		if seen[name] {
			return d.fail(prefix+plainName(name), "stands twice")
		}
		seen[name] = true
		if err := each(name); err != nil {
			return err
		}
	}
	_, err := d.token(field) // its end
	return err
}

// list reads the strings of an array, at most MaxSteps.
func (d *reader) list(field string, each func(string) error) error {
	if err := d.open(field, '[', "an array"); err != nil {
		return err
	}
	for n := 0; d.dec.More(); n++ {
		s, err := d.str(field)
		var bad *FileError
		switch {
		case errors.As(err, &bad):
			bad.Field = fmt.Sprintf("%s[%d]", field, n)
			return bad
		case n == MaxSteps:
			err = fmt.Errorf("there are at most %d", MaxSteps)
		default:
			err = each(s)
		}
		if err != nil {
			return d.fail(fmt.Sprintf("%s[%d]", field, n), "%v", err)
		}
	}
	_, err := d.token(field)
	return err
}

func (d *reader) contents() (Contents, error) {
	var c Contents
	have := map[string]bool{}
	err := d.object("file", "", func(name string) (err error) {
		have[name] = true
		switch name {
		case "version":
			t, err := d.token(name)
			if err == nil && t != json.Number(strconv.Itoa(Version)) {
				err = d.fail(name, "is no version that this program reads; it reads %d", Version)
			}
			return err
		case "kind":
			kind, err := d.str(name)
			if err == nil && kind != FileKind {
				err = d.fail(name, "%q is not %q: this is another kind of file", clip(kind), FileKind)
			}
			return err
		case "name":
			c.Name, err = d.str(name)
		case "shows":
			c.Shows, err = d.str(name)
		case "test":
			c.Test, err = d.str(name)
		case "options":
			c.Options, err = d.options()
		case "steps":
			err = d.list(name, func(s string) error {
				step, err := ParseStep(s)
				c.Steps = append(c.Steps, step)
				return err
			})
		case "answers":
			err = d.list(name, func(s string) error {
				c.Answers = append(c.Answers, s)
				return nil
			})
		default:
			err = d.fail(plainName(name), "there is no such field")
		}
		return err
	})
	if err != nil {
		return c, err
	}
	end := d.at
	d.skip()
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return c, d.fail("file", "something stands after the script")
	}
	d.at = end
	for _, name := range []string{"version", "kind", "name", "options", "steps"} {
		if !have[name] {
			return c, d.fail(name, "is missing")
		}
	}
	if len(c.Answers) > 0 && len(c.Answers) != len(c.Steps) {
		return c, d.fail("answers", "there are %d, for %d steps", len(c.Answers), len(c.Steps))
	}
	return c, nil
}

func (d *reader) options() (kit.Options, error) {
	var o kit.Options
	durations, flags := durationsOf(&o), flagsOf(&o)
	err := d.object("options", "options.", func(name string) error {
		field := "options." + plainName(name)
		if name == "tokens" {
			rule, err := d.str(field)
			if err != nil {
				return err
			}
			switch rule {
			case model.TokensNext.String():
			case model.TokensRising.String():
				o.Tokens = model.TokensRising
			default:
				return d.fail(field, "%q is neither %v nor %v", clip(rule), model.TokensNext, model.TokensRising)
			}
			return nil
		}
		for _, f := range durations {
			if f.name == name {
				s, err := d.str(field)
				if err != nil {
					return err
				}
				if *f.value, err = time.ParseDuration(s); err != nil {
					return d.fail(field, "%q is not a duration such as 1.5s", clip(s))
				}
				var bad *kit.OptionsError
				if errors.As(o.Validate(), &bad) {
					return d.fail(field, "%s", bad.Reason)
				}
				return nil
			}
		}
		for _, f := range flags {
			if f.name == name {
				t, err := d.token(field)
				if err != nil {
					return err
				}
				v, ok := t.(bool)
				if !ok {
					return d.fail(field, "must be true or false")
				}
				*f.value = v
				return nil
			}
		}
		return d.fail(field, "there is no such field")
	})
	return o, err
}

type durationField struct {
	name  string
	value *time.Duration
	in    func(*fileOptions) *string
}

func durationsOf(o *kit.Options) []durationField {
	return []durationField{
		{"granularity", &o.Granularity, func(f *fileOptions) *string { return &f.Granularity }},
		{"minTTL", &o.MinTTL, func(f *fileOptions) *string { return &f.MinTTL }},
		{"lockDelay", &o.LockDelay, func(f *fileOptions) *string { return &f.LockDelay }},
		{"late", &o.Late, func(f *fileOptions) *string { return &f.Late }},
	}
}

type flagField struct {
	name  string
	value *bool
}

func flagsOf(o *kit.Options) []flagField {
	return []flagField{{"renewAfterLapse", &o.RenewAfterLapse}, {"steadyClock", &o.SteadyClock}, {"volatile", &o.Volatile}, {"terse", &o.Terse}, {"noGet", &o.NoGet}}
}

// plainName is a field's name in an error, quoted unless it reads as one.
func plainName(name string) string {
	if name == "" || len(name) > 40 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return strconv.Quote(clip(name))
	}
	return name
}
