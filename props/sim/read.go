package sim

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fencepost/impl/lease"
	"fencepost/model"
)

// maxFile bounds a schedule file, in bytes.
const maxFile = 16 << 20

// ReadSchedule reads the file form; name stands for the file in errors, which
// match *[FieldError] unless r itself fails. Unknown fields are errors, and so
// are fields that stand twice, in other letters or as null, and anything that
// no World could do. It reads at most 16 MiB and a hundred thousand actions.
func ReadSchedule(r io.Reader, name string) (*Schedule, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b) > maxFile {
		return nil, &FieldError{File: name, Field: "file", Reason: fmt.Sprintf("is larger than %d MiB", maxFile>>20)}
	}
	d := fileReader{name: name, text: b, dec: json.NewDecoder(bytes.NewReader(b)), names: map[reflect.Type]map[string][]string{}}
	return d.schedule()
}

// fileReader walks the file by hand so that an error can name its line.
type fileReader struct {
	name string
	text []byte
	dec  *json.Decoder
	// names has the fields of each type decoded so far.
	names map[reflect.Type]map[string][]string
}

func (d *fileReader) line(offset int64) int {
	return 1 + bytes.Count(d.text[:min(int(offset), len(d.text))], []byte("\n"))
}

// start is the offset of the value that comes next.
func (d *fileReader) start() int64 {
	at := d.dec.InputOffset()
	for at < int64(len(d.text)) && strings.ContainsRune(" \t\r\n,:", rune(d.text[at])) {
		at++
	}
	return at
}

// fail turns err, about the value that starts at, into one line that names
// file, line and field.
func (d *fileReader) fail(field string, at int64, err error) error {
	sub, reason := explain(err)
	field = join(field, sub)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		at = int64(len(d.text))
	case errors.As(err, &syntax):
		// The decoder's own offset does not count what was read by token.
		if errors.As(json.NewDecoder(bytes.NewReader(d.text[at:])).Decode(new(json.RawMessage)), &syntax) {
			at += max(syntax.Offset-1, 0)
		}
	case sub != "":
		at = d.find(at, sub)
	}
	return &FieldError{File: d.name, Line: d.line(at), Field: clip(field, 100), Reason: clip(reason, 400)}
}

// find is the offset of the field with the given path in the object that
// starts at, or of the innermost object that should have it.
func (d *fileReader) find(at int64, path string) int64 {
	found := at
	walk(json.NewDecoder(bytes.NewReader(d.text[at:])), "", func(p string, key int64, _ oddity) bool {
		if p == path || strings.HasPrefix(path, p+".") {
			found = at + key
		}
		return p != path
	})
	return found
}

// decode reads the value that comes next.
func (d *fileReader) decode(field string, to any) error {
	at := d.start()
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return d.fail(field, at, err)
	}
	// encoding/json would take the last of two without a word, a name in other
	// letters for the name, and null for nothing at all.
	t := reflect.TypeOf(to)
	names, ok := d.names[t]
	if !ok {
		names = namesOf(t.Elem())
		d.names[t] = names
	}
	var odd error
	walk(json.NewDecoder(bytes.NewReader(raw)), "", func(path string, where int64, o oddity) bool {
		switch parent, name := cutLast(path); {
		case o == twice:
			odd = d.fail(join(field, path), at+where, errTwice)
		case o == null:
			odd = d.fail(join(field, path), at+where, errNull)
		case names[parent] != nil && !slices.Contains(names[parent], name):
			odd = d.fail(join(field, join(parent, plain(name))), at+where, errNoField)
		}
		return odd == nil
	})
	if odd != nil {
		return odd
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return d.fail(field, at, err)
	}
	return nil
}

func (d *fileReader) schedule() (*Schedule, error) {
	if t, err := d.dec.Token(); err != nil || t != json.Delim('{') {
		if err == nil {
			err = errors.New("a schedule is a JSON object")
		}
		return nil, d.fail("file", 0, err)
	}
	var head fileHead
	var actions []Action
	var starts []int64           // of the actions
	fields := map[string]int64{} // where their values start
	for d.dec.More() {
		at := d.start()
		t, err := d.dec.Token()
		if err != nil {
			return nil, d.fail("file", at, err)
		}
		key := t.(string)
		if _, again := fields[key]; again {
			return nil, d.fail(key, at, errTwice)
		}
		fields[key] = d.start()
		switch key {
		case "version":
			if err = d.decode(key, &head.Version); err == nil && head.Version != Version {
				err = d.fail(key, at, fmt.Errorf("%d is not a version this program reads; it reads %d", head.Version, Version))
			}
		case "name":
			err = d.decode(key, &head.Name)
		case "shows":
			err = d.decode(key, &head.Shows)
		case "subject":
			err = d.decode(key, &head.Subject)
		case "expect":
			err = d.decode(key, &head.Expect)
		case "waives":
			err = d.decode(key, &head.Waives)
		case "config":
			err = d.decode(key, &head.Config)
		case "actions":
			actions, starts, err = d.actions()
		default:
			err = d.fail(plain(key), at, errNoField)
		}
		if err != nil {
			return nil, err
		}
	}
	at := d.start()
	if _, err := d.dec.Token(); err != nil {
		return nil, d.fail("file", at, err)
	}
	at = d.start()
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, d.fail("file", at, errors.New("something stands after the schedule"))
	}
	for _, key := range []string{"version", "name", "subject", "expect", "config", "actions"} {
		if _, ok := fields[key]; !ok {
			return nil, d.fail(key, int64(len(d.text)), errors.New("is missing"))
		}
	}
	if !strings.HasPrefix(head.Subject, "mutant:") && head.Subject != SubjectBuiltin && head.Subject != SubjectExternal {
		return nil, d.fail("subject", fields["subject"], fmt.Errorf("%q is none of builtin, external and mutant:NAME", head.Subject))
	}
	for _, v := range head.Waives {
		if v != model.BeliefSafety && v != model.BeliefOwnership {
			return nil, d.fail("waives", fields["waives"], fmt.Errorf("%v holds whatever the clocks do; only %v and %v may break", v, model.BeliefSafety, model.BeliefOwnership))
		}
	}
	s := &Schedule{Name: head.Name, Shows: head.Shows, Subject: head.Subject, Expect: head.Expect, Waives: model.SetOf(head.Waives...), Actions: actions}
	var err error
	if s.Config, err = head.Config.config(); err == nil {
		err = s.Validate()
	}
	if err == nil {
		return s, nil
	}
	path, reason := explain(err)
	if rest, ok := strings.CutPrefix(path, "config."); ok {
		return nil, d.fail("config", fields["config"], &FieldError{Field: rest, Reason: reason})
	}
	var i int
	if n, _ := fmt.Sscanf(path, "actions[%d]", &i); n == 1 && i < len(starts) {
		where := fmt.Sprintf("actions[%d]", i)
		return nil, d.fail(where, starts[i], &FieldError{Field: strings.TrimPrefix(path, where+"."), Reason: reason})
	}
	return nil, d.fail(path, fields["actions"], errors.New(reason))
}

func (d *fileReader) actions() ([]Action, []int64, error) {
	at := d.start()
	if t, err := d.dec.Token(); err != nil || t != json.Delim('[') {
		if err == nil {
			err = errors.New("must be an array")
		}
		return nil, nil, d.fail("actions", at, err)
	}
	var actions []Action
	var starts []int64
	for d.dec.More() {
		at := d.start()
		where := fmt.Sprintf("actions[%d]", len(actions))
		if len(actions) == MaxActions {
			return nil, nil, d.fail(where, at, fmt.Errorf("a schedule has at most %d actions", MaxActions))
		}
		var f fileAction
		if err := d.decode(where, &f); err != nil {
			return nil, nil, err
		}
		a, err := f.action()
		if err != nil {
			return nil, nil, d.fail(where, at, err)
		}
		actions, starts = append(actions, a), append(starts, at)
	}
	at = d.start()
	if _, err := d.dec.Token(); err != nil {
		return nil, nil, d.fail("actions", at, err)
	}
	return actions, starts, nil
}

// namesOf is the names of the fields of the objects that t is made of, by the
// path of each. Objects whose names are free are not among them.
func namesOf(t reflect.Type) map[string][]string {
	out := map[string][]string{}
	var add func(path string, t reflect.Type)
	add = func(path string, t reflect.Type) {
		if t.Kind() != reflect.Struct {
			return
		}
		for f := range t.Fields() {
			switch {
			case f.Anonymous: // the lease's own configuration, which has no tags
				for g := range f.Type.Fields() {
					out[path] = append(out[path], inFile(g.Name))
				}
			default:
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				out[path] = append(out[path], name)
				add(join(path, name), f.Type)
			}
		}
	}
	add("", t)
	return out
}

// cutLast is a path before and after its last dot.
func cutLast(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// oddity is what encoding/json would let pass.
type oddity uint8

const (
	none  oddity = iota
	twice        // the object has the field already
	null         // the value is null
)

// walk visits the fields of the objects in the next value of dec: the path of
// each, the offset after its name, and whether its object had it before; and
// every null. It ends early where visit returns false.
func walk(dec *json.Decoder, path string, visit func(path string, at int64, o oddity) bool) bool {
	t, err := dec.Token()
	switch {
	case err != nil:
		return false
	case t == json.Delim('['):
		for dec.More() {
			if !walk(dec, path, visit) {
				return false
			}
		}
	case t == json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			t, err := dec.Token()
			if err != nil {
				return false
			}
			key := t.(string)
			sub := join(path, key)
			o := none
			if seen[key] {
				o = twice
			}
			if !visit(sub, dec.InputOffset(), o) || !walk(dec, sub, visit) {
				return false
			}
			seen[key] = true
		}
	case t == nil:
		return visit(path, dec.InputOffset(), null)
	default:
		return true
	}
	_, err = dec.Token()
	return err == nil
}

var (
	errTwice   = errors.New("stands twice")
	errNull    = errors.New("must not be null; leave it out")
	errNoField = errors.New("there is no such field")
)

// explain is which field err is about, if it says so, and what it says.
func explain(err error) (field, reason string) {
	var fe *FieldError
	var ce *lease.ConfigError
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &fe):
		return fe.Field, fe.Reason
	case errors.As(err, &ce):
		return inFile(ce.Field), ce.Reason
	case errors.As(err, &te):
		return te.Field, fmt.Sprintf("must be %s, not %s", wanted(te.Type), clip(te.Value, 40))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "", "the file ends too early"
	}
	if _, name, ok := strings.Cut(err.Error(), "json: unknown field "); ok {
		if name, err := strconv.Unquote(name); err == nil {
			return plain(name), errNoField.Error()
		}
	}
	return "", err.Error()
}

// inFile turns Go's name of a field into that in the file: TTL to ttl, LockDelay
// to lockDelay.
func inFile(name string) string {
	if name == strings.ToUpper(name) {
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:1]) + name[1:]
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// wanted is what JSON a Go type takes, in words.
func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.String || reflect.PointerTo(t).Implements(textUnmarshaler):
		return "a string"
	case k == reflect.Struct || k == reflect.Map:
		return "an object"
	case k == reflect.Slice:
		return "an array"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.Float64:
		return "a number"
	}
	return fmt.Sprintf("a whole number of type %v", t)
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// plain quotes a name that somebody chose if it would not read as one word.
func plain(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// clip keeps an error to one line that can be read.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "..."
}
