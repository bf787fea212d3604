package linearizability

import (
	"fmt"
	"slices"
	"strings"
)

// maxInstant bounds times and durations, so that sums of a few never overflow.
const maxInstant = 1 << 61

// readEvent makes an event of the fields of one record of a file, in their
// memory, and reports whether it has an index. Whatever is in no field of its
// own is kept in Fields.
func readEvent(e *Event, fields []Field) (hasIndex bool, err error) {
	*e = Event{Time: NoTime, Process: NoProcess}
	var hasType, named bool
	rest := fields[:0]
	for _, f := range fields {
		var err error
		switch f.Name {
		case "index":
			hasIndex = true
			e.Index, err = instant(f)
		case "time":
			if f.Value.IsNil() {
				break
			}
			e.Time, err = instant(f)
		case "process":
			var keep bool
			if named, keep, err = e.setProcess(f.Value); keep {
				rest = append(rest, f)
			}
		case "type":
			hasType = true
			word, _ := f.Value.Word()
			i := slices.Index(typeNames[:], word)
			if i < 0 {
				err = badField(f.Name, "want invoke, ok, fail or info, not %s", quote(f.Value.String()))
			}
			e.Type = Type(max(i, 0))
		case "f":
			word, ok := f.Value.Word()
			if !ok || !isOperation(word) {
				err = badField(f.Name, "want the name of an operation, not %s", quote(f.Value.String()))
			}
			e.F = word
		default:
			err = checkField(f)
			rest = append(rest, f)
		}
		if err != nil {
			return false, err
		}
	}
	if named && e.Type != Info {
		// Some of Jepsen's nemeses invoke and return, like clients.
		rest = append(rest, Field{"type", Keyword(e.Type.String())})
		e.Type = Info
	}
	switch {
	case !hasType:
		return false, badField("type", "missing: every event is an invoke, ok, fail or info")
	case e.F == "":
		return false, badField("f", "missing: every event names its operation or fault")
	case e.Process == NoProcess && e.Type != Info:
		return false, badField("process", "missing: only a fault, of type info, has no process")
	}
	if len(rest) > 0 {
		e.Fields = slices.Clip(rest)
	}
	return hasIndex, nil
}

// isOperation reports whether an operation or fault can have this name. A
// leading colon would make it another one in the other format.
func isOperation(name string) bool {
	return name != "" && len(name) <= maxWord && name[0] != ':'
}

// setProcess reads the process: an integer, or the name of one that is no
// client, such as Jepsen's nemesis. A name other than that is kept as a field.
func (e *Event) setProcess(v Value) (named, keep bool, err error) {
	if n, ok := v.Int(); ok {
		if n < 0 {
			return false, false, badField("process", "%d is negative", n)
		}
		e.Process = n
		return false, false, nil
	}
	word, ok := v.Word()
	if !ok && !v.IsNil() {
		return false, false, badField("process", "want an integer, not %s", quote(v.String()))
	}
	return ok, ok && word != nemesis, nil
}

// nemesis is the process, in Jepsen, that brings faults about.
const nemesis = "nemesis"

// instant reads a field that is an integer from 0.
func instant(f Field) (int64, error) {
	n, ok := f.Value.Int()
	if !ok {
		return 0, badField(f.Name, "want an integer, not %s", quote(f.Value.String()))
	}
	if n < 0 || n > maxInstant {
		return 0, badField(f.Name, "%d is out of range: want 0 to 2^61", n)
	}
	return n, nil
}

// checkField checks the fields that mean the same for every operation, so that
// a model needs not ask again.
func checkField(f Field) error {
	if f.Value.IsNil() {
		return nil
	}
	switch f.Name {
	case "token", "highest":
		if _, ok := f.Value.Uint(); !ok {
			return badField(f.Name, "want a fencing token, an integer from 0 to 2^64-1, not %s", quote(f.Value.String()))
		}
	case "ttl":
		_, err := instant(f)
		return err
	case "key", "owner", "holder":
		switch f.Value.kind {
		case KindInt, KindString, KindKeyword, KindSymbol: // those that have an identity
		default:
			return badField(f.Name, "want a name: a string, a keyword or an integer, not %s", quote(f.Value.String()))
		}
	}
	return nil
}

// identity returns the text of a name; false if v is none. Names are compared
// by it, so that 7 and "7" are one key, as they are in Jepsen and its exports.
func (v Value) identity() (string, bool) {
	if v.kind == KindInt {
		return v.String(), true
	}
	return v.Word()
}

// metaFormat is the version of the format that this package reads and writes.
const metaFormat = 1

// readMeta makes a Meta of the fields of a meta record.
func readMeta(fields []Field) (Meta, error) {
	m := DefaultMeta()
	version := false
	for _, f := range fields {
		var err error
		switch f.Name {
		case "version":
			version = true
			if n, ok := f.Value.Int(); !ok || n != metaFormat {
				err = badField("version", "%s is not a version this reader knows: want %d", quote(f.Value.String()), metaFormat)
			}
		case "drift":
			var ok bool
			if m.Drift, ok = f.Value.decimal(9); !ok || m.Drift < 0 || m.Drift >= 1e9 {
				err = badField("drift", "want a rate from 0 to below 1 with at most 9 decimals, not %s", quote(f.Value.String()))
			}
		case "early":
			m.Early, err = bound(f)
		case "late":
			m.Late, err = bound(f)
		case "eps":
			m.Eps, err = instant(f)
		case "lockDelay":
			m.LockDelay, err = instant(f)
		case "tokens":
			word, _ := f.Value.Word()
			m.Tokens = TokenRule(word)
			if !slices.Contains([]TokenRule{TokensNext, TokensRising, TokensNone}, m.Tokens) {
				err = badField("tokens", "want next, rising or none, not %s", quote(f.Value.String()))
			}
		case "anchor":
			word, _ := f.Value.Word()
			m.Anchor = Anchor(word)
			if m.Anchor != AnchorGrant && m.Anchor != AnchorCall {
				err = badField("anchor", "want grant or call, not %s", quote(f.Value.String()))
			}
		case "renewAfterLapse":
			m.RenewAfterLapse, err = flag(f)
		case "journal":
			m.Journal, err = flag(f)
		case "barrier":
			m.Barrier, err = flag(f)
		case "slots":
			n, ok := f.Value.Int()
			if m.Slots = int(n); !ok || n < 0 || n > maxSlots {
				err = badField("slots", "want the number of slots of a lease, 0 to %d, not %s", maxSlots, quote(f.Value.String()))
			}
		case "first":
			var ok bool
			if m.First, ok = f.Value.Uint(); !f.Value.IsNil() && (!ok || m.First == 0) {
				err = badField("first", "want a token from 1, or null for any, not %s", quote(f.Value.String()))
			}
		default:
			m.Extra = append(m.Extra, f)
		}
		if err != nil {
			return Meta{}, err
		}
	}
	if !version {
		return Meta{}, badField("version", "missing: want %d", metaFormat)
	}
	return m, nil
}

// bound reads a duration that null leaves open.
func bound(f Field) (int64, error) {
	if f.Value.IsNil() {
		return Unbounded, nil
	}
	return instant(f)
}

func flag(f Field) (bool, error) {
	b, ok := f.Value.Bool()
	if !ok {
		return false, badField(f.Name, "want true or false, not %s", quote(f.Value.String()))
	}
	return b, nil
}

// fields is the inverse of readMeta.
func (m Meta) fields() []Field {
	limit := func(n int64) Value {
		if n == Unbounded {
			return Value{}
		}
		return Int(n)
	}
	fs := []Field{
		{"version", Int(metaFormat)},
		{"drift", rate(m.Drift)},
		{"early", limit(m.Early)},
		{"late", limit(m.Late)},
		{"eps", Int(m.Eps)},
		{"tokens", String(string(m.Tokens))},
		{"anchor", String(string(m.Anchor))},
	}
	if m.LockDelay > 0 {
		fs = append(fs, Field{"lockDelay", Int(m.LockDelay)})
	}
	if m.RenewAfterLapse {
		fs = append(fs, Field{"renewAfterLapse", Bool(true)})
	}
	if m.First > 0 {
		fs = append(fs, Field{"first", Uint(m.First)})
	}
	if m.Barrier {
		fs = append(fs, Field{"barrier", Bool(true)})
	}
	if m.Slots > 0 {
		fs = append(fs, Field{"slots", Int(int64(m.Slots))})
	}
	if m.Journal {
		fs = append(fs, Field{"journal", Bool(true)})
	}
	return append(fs, m.Extra...)
}

// rate spells a rate of parts per billion as a decimal number.
func rate(ppb int64) Value {
	if ppb == 0 {
		return Int(0)
	}
	return textValue(KindNumber, "0."+strings.TrimRight(fmt.Sprintf("%09d", ppb), "0"))
}

// isDefault reports whether m says no more than the absence of a meta record.
func (m Meta) isDefault() bool {
	d := DefaultMeta()
	return len(m.Extra) == 0 && m.Drift == d.Drift && m.Early == d.Early && m.Late == d.Late && m.Eps == d.Eps &&
		m.Tokens == d.Tokens && m.Anchor == d.Anchor && m.LockDelay == d.LockDelay &&
		m.RenewAfterLapse == d.RenewAfterLapse && m.First == d.First && m.Barrier == d.Barrier && m.Slots == d.Slots
}
