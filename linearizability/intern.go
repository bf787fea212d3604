package linearizability

// interner gives equal short texts one copy, so that a reader of millions of
// events makes few: names, keys and owners come again and again. It is bounded:
// when it is full it starts anew, since what it has learnt of a hostile file, or
// of owners long gone, is worth nothing.
type interner struct {
	bodies map[string]*body
}

const (
	maxInterned     = 1 << 14 // texts
	maxInternedText = 64      // bytes of one
)

// text returns the one body of a text.
func (t *interner) text(b []byte) *body {
	if len(b) > maxInternedText {
		return &body{text: string(b)}
	}
	if shared, ok := t.bodies[string(b)]; ok {
		return shared
	}
	if t.bodies == nil {
		t.bodies = make(map[string]*body)
	}
	if len(t.bodies) >= maxInterned {
		clear(t.bodies)
	}
	fresh := &body{text: string(b)}
	t.bodies[fresh.text] = fresh
	return fresh
}
