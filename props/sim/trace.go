package sim

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"fencepost/model"
)

// Trace is what happened in a run: the events that applying its actions
// produced.
type Trace struct {
	Events []model.Event
}

// WriteTo writes the trace as text, one event a line, the same bytes for the
// same schedule.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	b := bufio.NewWriter(w)
	var n int64
	for i := range t.Events {
		k, err := fmt.Fprintln(b, Line(&t.Events[i]))
		n += int64(k)
		if err != nil {
			return n, err
		}
	}
	return n, b.Flush()
}

// Line is one event as prose, with the instant first.
func Line(e *model.Event) string {
	who, peer := names.Of(e.Node), names.Of(e.Peer)
	at := fmt.Sprintf("%12s  #%-4d ", time.Duration(e.At), e.Action)
	asked := func() string {
		s := e.Op.String()
		switch e.Op {
		case model.OpAcquire:
			s += fmt.Sprintf(" as %s ttl %v", names.Owner(e.Owner), time.Duration(e.TTL))
		case model.OpRenew:
			s += fmt.Sprintf(" as %s token %d ttl %v", names.Owner(e.Owner), e.Asked, time.Duration(e.TTL))
		case model.OpRelease:
			s += fmt.Sprintf(" as %s token %d", names.Owner(e.Owner), e.Asked)
		case model.OpFence:
			s += fmt.Sprintf(" token %d", e.Asked)
		case model.OpWrite:
			s += fmt.Sprintf(" %s=%d token %d", keyName(e.Key), e.Value, e.Asked)
		case model.OpRead:
			s += " " + keyName(e.Key)
		}
		return s
	}
	answer := func() string {
		s := e.Code.String()
		switch e.Code {
		case model.CodeGranted:
			s += fmt.Sprintf(" token %d for %v", e.Token, time.Duration(e.Remaining))
		case model.CodeHeld:
			s += fmt.Sprintf(" by %s token %d for %v", names.Owner(e.Holder), e.Token, time.Duration(e.Remaining))
		case model.CodeDelayed:
			s += fmt.Sprintf(" for %v", time.Duration(e.Remaining))
		case model.CodeStale:
			s += fmt.Sprintf(", highest is %d", e.Token)
		case model.CodeValue:
			s += fmt.Sprintf(" %d", e.Value)
		}
		return s
	}
	copied := ""
	if e.Copy {
		copied = "copy "
	}
	switch e.Kind {
	case model.KindInvoke:
		return at + fmt.Sprintf("%s -> %s  [%s] %s", who, peer, e.Req, asked())
	case model.KindHandle:
		return at + fmt.Sprintf("%s  %s[%s] of %s: %s: %s", who, copied, e.Msg, peer, asked(), answer())
	case model.KindReturn:
		return at + fmt.Sprintf("%s <- %s  %s[%s] answers [%s] %v: %s", who, peer, copied, e.Msg, e.Req, e.Op, answer())
	case model.KindDuplicate:
		return at + fmt.Sprintf("network copies [%s] as [%s]", e.Req, e.Msg)
	case model.KindLose:
		return at + fmt.Sprintf("%s[%s] from %s to %s is lost: %v", copied, e.Msg, peer, who, e.Reason)
	case model.KindLapse:
		return at + fmt.Sprintf("%s  tenure of %s token %d lapses", who, names.Owner(e.Holder), e.Token)
	case model.KindLead, model.KindExtend:
		return at + fmt.Sprintf("%s  %vs as %s token %d for %v of its clock", who, e.Kind, names.Owner(e.Owner), e.Token, time.Duration(e.TTL))
	case model.KindStepDown:
		return at + fmt.Sprintf("%s  steps down as %s token %d: %v", who, names.Owner(e.Owner), e.Token, e.Reason)
	case model.KindFencing, model.KindResign, model.KindWork, model.KindWorkDone:
		return at + fmt.Sprintf("%s  %v as %s token %d", who, e.Kind, names.Owner(e.Owner), e.Token)
	case model.KindRestart:
		s := fmt.Sprintf("%s  restart", who)
		switch names[e.Node].Role {
		case model.RoleStore:
			s += fmt.Sprintf(": %s holds, token %d", names.Owner(e.Holder), e.Token)
		case model.RoleStorage:
			s += fmt.Sprintf(": highest is %d", e.Token)
		}
		return at + s
	case model.KindDrift:
		return at + fmt.Sprintf("%s  clock runs at %d ppm", who, e.Value)
	case model.KindJump:
		return at + fmt.Sprintf("%s  wall clock jumps by %v", who, time.Duration(e.Value))
	case model.KindCut:
		return at + fmt.Sprintf("link %s - %s is cut", who, peer)
	case model.KindDelete:
		return at + "operator deletes the lease"
	case model.KindCalm:
		return at + fmt.Sprintf("calm: messages take %v, ticks are %v apart", time.Duration(e.Remaining), time.Duration(e.TTL))
	case model.KindHeal, model.KindCalmEnd:
		return at + e.Kind.String()
	}
	return at + fmt.Sprintf("%s  %v", who, e.Kind)
}
