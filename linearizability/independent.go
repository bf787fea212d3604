package linearizability

import "strings"

// separate replaces a tuple of jepsen.independent, a key and a value, by two
// fields. Sure says that every operation has one; without it only a tag tells.
func separate(e *Event, sure bool) error {
	for i := range e.Fields {
		if e.Fields[i].Name != "value" {
			continue
		}
		v := e.Fields[i].Value
		tagged := v.kind == KindTagged && isTupleTag(v.text)
		if tagged {
			v = v.list[0]
		}
		if !tagged && (!sure || e.Process == NoProcess) {
			return nil
		}
		if v.kind != KindVector && v.kind != KindList || len(v.list) != 2 {
			return badField("value", "want an independent tuple, [key value], not %s", quote(v.String()))
		}
		if e.Has("key") {
			return badField("key", "appears twice: as a field and in an independent tuple")
		}
		key := Field{"key", v.list[0]}
		if err := checkField(key); err != nil {
			return err
		}
		e.Fields[i].Value = v.list[1]
		e.Fields = append(e.Fields[:i:i], append([]Field{key}, e.Fields[i:]...)...)
		return nil
	}
	if sure && e.Process != NoProcess {
		return badField("value", "missing: want an independent tuple, [key value]")
	}
	return nil
}

func isTupleTag(tag string) bool {
	tag = strings.ToLower(tag)
	return strings.HasSuffix(tag, "tuple") && strings.Contains(tag, "independent")
}

// joiner puts the two fields back into one tuple.
type joiner struct {
	keys map[int64]Value // of the open calls: a return need not repeat it
}

// join returns the fields of e with a tuple for the key and the value.
func (j *joiner) join(e *Event) ([]Field, error) {
	if e.Process == NoProcess {
		return e.Fields, nil
	}
	key := e.Field("key")
	switch {
	case e.Type != Invoke && key.IsNil():
		key = j.keys[e.Process]
	case e.Type == Invoke:
		if j.keys == nil {
			j.keys = make(map[int64]Value)
		}
		j.keys[e.Process] = key
	}
	if key.IsNil() {
		return nil, badField("key", "missing: an independent tuple has one")
	}
	fields := make([]Field, 0, len(e.Fields)+1)
	tuple := Field{"value", Vector(key, e.Field("value"))}
	placed := false
	for _, f := range e.Fields {
		if f.Name == "key" || f.Name == "value" {
			if placed {
				continue
			}
			placed, f = true, tuple
		}
		fields = append(fields, f)
	}
	if !placed {
		fields = append(fields, tuple)
	}
	return fields, nil
}
