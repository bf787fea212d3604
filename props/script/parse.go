package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TextError says what cannot be read in the text of a script.
type TextError struct {
	Line   int    // from 1; 0 where there is only one
	Word   string // the word that is wrong; empty where one is missing
	Reason string
}

func (e *TextError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Word != "" {
		where += fmt.Sprintf("%q: ", e.Word)
	}
	return where + e.Reason
}

// Parse reads a step a line; empty lines and what follows a # are skipped. It
// panics on bad text, which is a bug of the caller; [ParseText] is for text
// from elsewhere.
func Parse(text string) []Step {
	steps, err := ParseText(text)
	if err != nil {
		panic("script: " + err.Error())
	}
	return steps
}

// ParseText is [Parse] for text that may be bad: the error is a *[TextError].
func ParseText(text string) ([]Step, error) {
	var steps []Step
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		s, err := ParseStep(line)
		if err != nil {
			bad, _ := errors.AsType[*TextError](err)
			bad.Line = n
			return nil, bad
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// ParseStep reads one step, as documented at [Step]. The error is a
// *[TextError] that names the word.
func ParseStep(text string) (Step, error) {
	r := words{left: strings.Fields(text)}
	s, err := r.step()
	if err == nil && len(r.left) > 0 {
		err = &TextError{Word: clip(r.left[0]), Reason: "nothing belongs there"}
	}
	if err != nil {
		return Step{}, err
	}
	return s, nil
}

// words are those of a step that are not read yet.
type words struct{ left []string }

func (r *words) next(what string) (string, error) {
	if len(r.left) == 0 {
		return "", &TextError{Reason: "the step ends where " + what + " should be"}
	}
	w := r.left[0]
	r.left = r.left[1:]
	return w, nil
}

// skip reads word if it comes next.
func (r *words) skip(word string) bool {
	if len(r.left) == 0 || r.left[0] != word {
		return false
	}
	r.left = r.left[1:]
	return true
}

func (r *words) step() (s Step, err error) {
	w, err := r.next("what to do, such as acquire")
	if err != nil {
		return s, err
	}
	for k := KindNone + 1; k < kinds; k++ {
		if kindNames[k] == w {
			s.Do = k
		}
	}
	if s.Do == KindNone {
		return s, &TextError{Word: clip(w), Reason: "is none of acquire, renew, release, get, advance, restart and delete"}
	}
	if s.Do == Advance {
		if s.D, err = r.duration("how long"); err == nil && s.D <= 0 {
			err = &TextError{Word: s.D.String(), Reason: "time passes forward only"}
		}
		return s, err
	}
	if s.Do.hasWho() {
		if s.Who, err = r.who(); err != nil {
			return s, err
		}
	}
	if s.Do.hasToken() {
		s.Token = Ref{Of: s.Who}
		if r.skip("of") {
			if s.Token, err = r.ref(); err != nil {
				return s, err
			}
		}
	}
	if s.Do.hasTTL() {
		if s.TTL, err = r.duration("a TTL such as 10s"); err != nil {
			return s, err
		}
	}
	if s.Do != Restart && r.skip("on") {
		w, err := r.next("q")
		if err != nil {
			return s, err
		}
		if w != "q" {
			return s, &TextError{Word: clip(w), Reason: "is no lease: the second one is q, and the first has no name"}
		}
		s.On = 1
	}
	return s, nil
}

func (r *words) duration(what string) (time.Duration, error) {
	w, err := r.next(what)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(w)
	if err != nil {
		return 0, &TextError{Word: clip(w), Reason: "is not a duration such as 10s or 9.999s"}
	}
	return d, nil
}

func (r *words) who() (Who, error) {
	w, err := r.next("who, such as a or a.2")
	if err != nil || w == nobody {
		return Who{}, err
	}
	return parseWho(w)
}

func parseWho(w string) (Who, error) {
	bad := &TextError{Word: clip(w), Reason: "is nobody that there is: a, b or c, their later incarnations a.2 to a.255, or nobody"}
	node, seq, later := strings.Cut(w, ".")
	i := strings.Index("abc", node)
	if len(node) != 1 || i < 0 {
		return Who{}, bad
	}
	who := Who{Node: uint8(i) + 1, Seq: 1}
	if later {
		n, err := strconv.ParseUint(seq, 10, 8)
		if err != nil || n == 0 || seq[0] == '0' {
			return Who{}, bad
		}
		who.Seq = uint8(n)
	}
	return who, nil
}

func (r *words) ref() (Ref, error) {
	w, err := r.next("whose token, such as a or last+1")
	if err != nil {
		return Ref{}, err
	}
	var ref Ref
	of := w
	if i := strings.IndexAny(w, "+-"); i >= 0 {
		of = w[:i]
		n, err := strconv.ParseInt(w[i:], 10, 8)
		if err != nil || n == 0 || w[i+1] == '0' {
			return ref, &TextError{Word: clip(w), Reason: "is no token: what is added to it is from -128 to 127"}
		}
		ref.Plus = int8(n)
	}
	if of == "last" {
		return ref, nil
	}
	if ref.Of, err = parseWho(of); err != nil {
		return ref, &TextError{Word: clip(w), Reason: "is no token: that of a, b.2 or last, plus or minus a small number"}
	}
	return ref, nil
}

// clip keeps an error to a line, whatever the word.
func clip(w string) string {
	const limit = 40
	if len(w) <= limit {
		return w
	}
	return strings.ToValidUTF8(w[:limit], "") + "..."
}
