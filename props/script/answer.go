package script

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// nonces tell a node's incarnations from those of another process of the same
// name. They use all of their 64 bits, as random ones do.
var nonces = [...]uint64{0, 0xa11ce_0a4b7c3d91e, 0xb0b1_93f5e60c2d47, 0xca201_5e82a9b64f3}

// holderOf is w as the store knows it.
func holderOf(w Who) lease.Holder {
	if w.Node == 0 {
		return lease.Holder{}
	}
	return lease.Holder{Node: nodes[w.Node], Seq: uint64(w.Seq), Nonce: nonces[w.Node]}
}

var nodes = [...]string{"", "a", "b", "c"}

// owner is w as the contract knows it.
func owner(w Who) model.Owner {
	return model.Owner{Node: model.Node(w.Node), Seq: uint32(w.Seq)}
}

// stranger stands for every holder that never asked for anything.
var stranger = model.Owner{Node: model.MaxNodes - 1, Seq: 1}

// ownerOf is h as the contract knows it.
func ownerOf(h lease.Holder) model.Owner {
	if h.IsZero() {
		return model.Owner{}
	}
	for i := 1; i < len(nodes); i++ {
		if h.Node == nodes[i] && h.Nonce == nonces[i] && h.Seq > 0 && h.Seq <= 255 {
			return model.Owner{Node: model.Node(i), Seq: uint32(h.Seq)}
		}
	}
	return stranger
}

// granted takes down a grant, which must be of what was asked for.
func (l *Line) granted(g lease.Grant, resource string, holder lease.Holder) *model.Breach {
	l.Said = model.Said{Code: model.CodeGranted, Token: uint64(g.Token), Holder: ownerOf(g.Holder), TTL: int64(g.TTL)}
	if g.Resource == resource && g.Holder == holder {
		return nil
	}
	if g == (lease.Grant{}) {
		l.Answer = "an empty grant, and no error"
		return &model.Breach{Rule: model.RuleGrantHolder, Want: "a grant that says for what, to whom, under which token and for how long; or an error that refuses, such as *lease.HeldError"}
	}
	l.Answer = fmt.Sprintf("granted: %q to %q, token %d", g.Resource, g.Holder, g.Token)
	return wrongGrant(resource, holder)
}

func (l *Line) observed(seen lease.Observation) {
	l.Said = model.Said{Code: model.CodeFree, Token: uint64(seen.Token), Holder: ownerOf(seen.Holder), Remaining: int64(seen.Remaining)}
	switch {
	case !seen.Holder.IsZero():
		l.Said.Code = model.CodeHeld
		l.noteStranger(seen.Holder)
	case seen.Remaining > 0:
		l.Said.Code = model.CodeDelayed
	}
}

// refused takes down an error, which must be one of the refusals that package
// lease knows.
func (l *Line) refused(err error) *model.Breach {
	switch lease.Refusal(err) {
	case lease.CodeHeld:
		e, _ := errors.AsType[*lease.HeldError](err)
		l.Said = model.Said{Code: model.CodeHeld, Token: uint64(e.Token), Holder: ownerOf(e.Holder), Remaining: int64(e.Remaining)}
		l.noteStranger(e.Holder)
	case lease.CodeDelayed:
		e, _ := errors.AsType[*lease.DelayError](err)
		l.Said = model.Said{Code: model.CodeDelayed, Remaining: int64(e.Remaining)}
	case lease.CodeLapsed:
		l.Said = model.Said{Code: model.CodeLapsed}
	case lease.CodeLost:
		l.Said = model.Said{Code: model.CodeLost}
		if e, ok := errors.AsType[*lease.LostError](err); ok { // not in words of the store's own
			l.Said.Token, l.Said.Holder = uint64(e.Latest), ownerOf(e.Current)
			l.noteStranger(e.Current)
		}
	case lease.CodeInvalid:
		l.Said = model.Said{Code: model.CodeInvalid}
	default:
		return l.unexplained(err)
	}
	return nil
}

// unexplained takes down an error that is no refusal.
func (l *Line) unexplained(err error) *model.Breach {
	l.failed(err)
	if l.senseless() {
		// Whatever a store calls it, it does not do as such a request asks.
		l.Said = model.Said{Code: model.CodeInvalid}
		return nil
	}
	return noAnswer(l.Step)
}

// senseless reports whether the request makes no sense, whatever the state.
func (l *Line) senseless() bool {
	do := l.Step.Do
	return do.hasTTL() && l.Step.TTL <= 0 || do.hasWho() && l.Step.Who == (Who{}) || do.hasToken() && l.Token == 0
}

func (l *Line) noteStranger(h lease.Holder) {
	if l.Said.Holder == stranger {
		l.Answer = l.answer(fmt.Sprintf("the unknown %q", h))
	}
}

func (l *Line) failed(err error) { l.Answer = "error: " + oneLine(err.Error()) }

// describe puts the answer in words, unless it has some already.
func (l *Line) describe() {
	if l.Answer == "" && !l.NoOp {
		l.Answer = l.answer(whoIs(l.Said.Holder))
	}
}

func whoIs(o model.Owner) string { return Who{Node: uint8(o.Node), Seq: uint8(o.Seq)}.String() }

// answer is what was said, with a name for the holder in it.
func (l *Line) answer(holder string) string {
	said := &l.Said
	remaining := ""
	if said.Remaining != 0 {
		remaining = " for another " + time.Duration(said.Remaining).String()
	}
	held := func() string {
		switch {
		case said.Holder == model.Owner{}:
			return "somebody holds it" + remaining
		case said.Token == 0:
			return holder + " holds it" + remaining
		}
		return fmt.Sprintf("%s holds it under token %d%s", holder, said.Token, remaining)
	}
	get := l.Step.Do == Get
	switch said.Code {
	case model.CodeGranted:
		return fmt.Sprintf("granted: token %d for %v", said.Token, time.Duration(said.TTL))
	case model.CodeReleased:
		return "released"
	case model.CodeFree:
		return "nobody holds it" + remaining
	case model.CodeHeld:
		if get {
			return held()
		}
		return "refused: " + held()
	case model.CodeDelayed:
		if get {
			return "nobody holds it, lock delay" + remaining
		}
		return "refused: lock delay" + remaining
	case model.CodeLapsed:
		return "refused: lapsed"
	case model.CodeLost:
		switch {
		case said.Holder != model.Owner{}:
			return "refused: lost, " + held()
		case said.Token != 0:
			return fmt.Sprintf("refused: lost, the last token is %d", said.Token)
		}
		return "refused: not held"
	case model.CodeInvalid:
		return "refused: invalid request"
	}
	return ""
}

// panicked is what a panic says, and where it came from: to be called by the
// deferred function that recovered it.
func panicked(r any) string {
	says := oneLine(fmt.Sprint(r))
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	thrown := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			thrown = true
		case thrown:
			return fmt.Sprintf("%s, at %s:%d", says, filepath.Base(f.File), f.Line)
		}
		if !more {
			return says
		}
	}
}

// oneLine keeps what somebody else wrote to a line of a story.
func oneLine(s string) string {
	const limit = 120
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}
