package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// fileHead is everything in a schedule file but its actions.
type fileHead struct {
	Version int               `json:"version"`
	Name    string            `json:"name"`
	Shows   string            `json:"shows,omitempty"`
	Subject string            `json:"subject"`
	Expect  model.Invariant   `json:"expect"`
	Waives  []model.Invariant `json:"waives,omitempty"`
	Config  fileConfig        `json:"config"`
}

type fileConfig struct {
	Clients    int               `json:"clients"`
	Lease      fileLease         `json:"lease"`
	Storage    string            `json:"storage,omitempty"`
	FirstToken uint64            `json:"firstToken,omitempty"`
	Offsets    map[string]string `json:"offsets,omitempty"`
	Messages   int               `json:"messages,omitempty"`
}

// fileLease is the lease's configuration, with errors that name its fields.
type fileLease struct{ lease.Config }

func (l *fileLease) UnmarshalJSON(b []byte) error {
	err := l.Config.UnmarshalJSON(b)
	if err != nil {
		field, reason := explain(err)
		return &FieldError{Field: join("lease", field), Reason: reason}
	}
	return nil
}

type fileAction struct {
	ID    int32            `json:"id"`
	Do    string           `json:"do"`
	Who   string           `json:"who,omitempty"`
	Peer  string           `json:"peer,omitempty"`
	As    string           `json:"as,omitempty"`
	Msg   string           `json:"msg,omitempty"`
	Token *uint64          `json:"token,omitempty"`
	Key   string           `json:"key,omitempty"`
	Value *int64           `json:"value,omitempty"`
	D     string           `json:"d,omitempty"`
	TTL   string           `json:"ttl,omitempty"`
	PPM   int64            `json:"ppm,omitempty"`
	Rates map[string]int32 `json:"rates,omitempty"`
	Delay string           `json:"delay,omitempty"`
	Every string           `json:"every,omitempty"`
	Note  string           `json:"note,omitempty"`
}

// MarshalJSON writes the file form: the head indented, one action a line.
func (s *Schedule) MarshalJSON() ([]byte, error) {
	head := fileHead{Version: Version, Name: s.Name, Shows: s.Shows, Subject: s.Subject, Expect: s.Expect,
		Config: fileConfig{Clients: s.Config.Clients, Lease: fileLease{s.Config.Lease}, Storage: s.Config.Storage,
			FirstToken: s.Config.FirstToken, Messages: s.Config.Messages}}
	for v := range s.Waives.All() {
		head.Waives = append(head.Waives, v)
	}
	for n, d := range s.Config.Offsets {
		if d != 0 {
			if head.Config.Offsets == nil {
				head.Config.Offsets = map[string]string{}
			}
			head.Config.Offsets[names.Of(model.Node(n))] = d.String()
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // people read and write these files
	enc.SetIndent("", "  ")
	if err := enc.Encode(head); err != nil {
		return nil, err
	}
	out.Truncate(out.Len() - len("\n}\n"))
	out.WriteString(",\n  \"actions\": [")
	enc.SetIndent("", "")
	for i := range s.Actions {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		if err := enc.Encode(s.Actions[i].file()); err != nil {
			return nil, err
		}
		out.Truncate(out.Len() - 1)
	}
	out.WriteString("\n  ]\n}\n")
	return out.Bytes(), nil
}

func (a *Action) file() fileAction {
	f := fields[a.Kind].required | fields[a.Kind].optional
	out := fileAction{ID: a.ID, Do: a.Kind.String(), Note: a.Note}
	text := func(bit field, d time.Duration) string {
		if f&bit == 0 || d == 0 && fields[a.Kind].required&bit == 0 {
			return ""
		}
		return d.String()
	}
	out.D, out.TTL, out.Delay, out.Every = text(fieldD, a.D), text(fieldTTL, a.TTL), text(fieldDelay, a.Delay), text(fieldEvery, a.Every)
	if f&fieldWho != 0 {
		out.Who = names.Of(a.Who)
	}
	if f&fieldPeer != 0 {
		out.Peer = names.Of(a.Peer)
	}
	if f&fieldAs != 0 && a.As != (model.Owner{}) {
		out.As = names.Owner(a.As)
	}
	if f&fieldMsg != 0 {
		out.Msg = a.Msg.String()
	}
	if f&fieldToken != 0 {
		out.Token = &a.Token
	}
	if f&fieldKey != 0 {
		out.Key = keyName(a.Key)
	}
	if f&fieldValue != 0 {
		out.Value = &a.Value
	}
	if f&fieldRate != 0 {
		out.PPM = a.Rate
	}
	if f&fieldRates != 0 {
		for n, r := range a.Rates {
			if r != 0 {
				if out.Rates == nil {
					out.Rates = map[string]int32{}
				}
				out.Rates[names.Of(model.Node(n))] = r
			}
		}
	}
	return out
}

func (c *fileConfig) config() (Config, error) {
	out := Config{Clients: c.Clients, Lease: c.Lease.Config, Storage: c.Storage, FirstToken: c.FirstToken, Messages: c.Messages}
	for _, name := range slices.Sorted(maps.Keys(c.Offsets)) {
		text := c.Offsets[name]
		n := NodeNamed(name)
		if n == 0 {
			return out, badField("config.offsets", "%q is no node", name)
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return out, badField("config.offsets."+name, "%q is not a duration such as \"42s\"", text)
		}
		out.Offsets[n] = d
	}
	return out, nil
}

func (f *fileAction) action() (Action, error) {
	a := Action{ID: f.ID, Note: f.Note, Rate: f.PPM}
	for k := KindNone + 1; k < kinds; k++ {
		if kindNames[k] == f.Do {
			a.Kind = k
		}
	}
	if a.Kind == KindNone {
		return a, badField("do", "there is no action %q", f.Do)
	}
	var have field
	var err error
	set := func(bit field, name string, present bool, parse func() error) {
		if err != nil || !present {
			return
		}
		have |= bit
		if (fields[a.Kind].required|fields[a.Kind].optional)&bit == 0 {
			err = badField(name, "%v has no such field", a.Kind)
			return
		}
		if e := parse(); e != nil {
			err = badField(name, "%v", e)
		}
	}
	node := func(to *model.Node, text string) func() error {
		return func() error {
			if *to = NodeNamed(text); *to == 0 {
				return fmt.Errorf("%q is no node", text)
			}
			return nil
		}
	}
	duration := func(to *time.Duration, text string) func() error {
		return func() (err error) {
			if *to, err = time.ParseDuration(text); err != nil {
				return fmt.Errorf("%q is not a duration such as \"1.5s\"", text)
			}
			return nil
		}
	}
	set(fieldWho, "who", f.Who != "", node(&a.Who, f.Who))
	set(fieldPeer, "peer", f.Peer != "", node(&a.Peer, f.Peer))
	set(fieldAs, "as", f.As != "", func() (err error) { a.As, err = parseOwner(f.As); return })
	set(fieldMsg, "msg", f.Msg != "", func() (err error) { a.Msg, err = parseMsg(f.Msg); return })
	set(fieldToken, "token", f.Token != nil, func() error { a.Token = *f.Token; return nil })
	set(fieldKey, "key", f.Key != "", func() error {
		for k := range uint8(model.Keys) {
			if keyName(k) == f.Key {
				a.Key = k
				return nil
			}
		}
		return fmt.Errorf("%q is none of x, y, z and w", f.Key)
	})
	set(fieldValue, "value", f.Value != nil, func() error { a.Value = *f.Value; return nil })
	set(fieldD, "d", f.D != "", duration(&a.D, f.D))
	set(fieldTTL, "ttl", f.TTL != "", duration(&a.TTL, f.TTL))
	set(fieldRate, "ppm", f.PPM != 0, func() error { return nil })
	set(fieldDelay, "delay", f.Delay != "", duration(&a.Delay, f.Delay))
	set(fieldEvery, "every", f.Every != "", duration(&a.Every, f.Every))
	set(fieldRates, "rates", f.Rates != nil, func() error {
		for _, name := range slices.Sorted(maps.Keys(f.Rates)) {
			n := NodeNamed(name)
			if n == 0 {
				return fmt.Errorf("%q is no node", name)
			}
			a.Rates[n] = f.Rates[name]
		}
		return nil
	})
	if err != nil {
		return a, err
	}
	for _, need := range []struct {
		bit  field
		name string
	}{{fieldWho, "who"}, {fieldPeer, "peer"}, {fieldMsg, "msg"}, {fieldToken, "token"}, {fieldD, "d"}, {fieldTTL, "ttl"}, {fieldRate, "ppm"}} {
		if fields[a.Kind].required&need.bit&^have != 0 {
			return a, badField(need.name, "is missing; %v needs it", a.Kind)
		}
	}
	return a, nil
}

// parseOwner reads node#seq or node#seq.boot.
func parseOwner(s string) (model.Owner, error) {
	bad := fmt.Errorf("%q is no holder such as C1#2", s)
	name, rest, ok := strings.Cut(s, "#")
	seq, boot, restarted := strings.Cut(rest, ".")
	o := model.Owner{Node: NodeNamed(name)}
	n, err := strconv.ParseUint(seq, 10, 32)
	if !ok || o.Node == 0 || err != nil || n == 0 {
		return o, bad
	}
	o.Seq = uint32(n)
	if restarted {
		b, err := strconv.ParseUint(boot, 10, 16)
		if err != nil {
			return o, bad
		}
		o.Boot = uint16(b)
	}
	return o, nil
}

// parseMsg reads action.number.
func parseMsg(s string) (model.Msg, error) {
	action, n, ok := strings.Cut(s, ".")
	a, err1 := strconv.ParseInt(action, 10, 32)
	k, err2 := strconv.ParseInt(n, 10, 32)
	if !ok || err1 != nil || err2 != nil || a <= 0 || k < 0 {
		return model.Msg{}, fmt.Errorf("%q is no message such as 12.0: the id of the action that sent it, and its number there", s)
	}
	return model.Msg{Action: int32(a), N: int32(k)}, nil
}
