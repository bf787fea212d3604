package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"fencepost/model"
)

func read(text string) (*Schedule, error) { return ReadSchedule(strings.NewReader(text), "a.json") }

func write(t testing.TB, s *Schedule) string {
	t.Helper()
	b, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSchedulesRoundTripExactly(t *testing.T) {
	var all []*Schedule
	for seed := range uint64(60) {
		all = append(all, scrambled(seed, 200), generated(t, Raw(), seed, 100))
	}
	all[0].Subject, all[0].Expect = "mutant:unfenced", model.StorageSafety
	all[1].Subject, all[1].Waives = SubjectExternal, model.SetOf(model.BeliefSafety, model.BeliefOwnership)
	all[2].Name, all[2].Shows = "of <b> & \"c\"\n", "33 < 34"
	all[3].Actions = nil
	for i, s := range all {
		text := write(t, s)
		got, err := read(text)
		if err != nil {
			t.Fatalf("schedule %d: %v", i, err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("schedule %d reads back as\n%+v, was\n%+v", i, got, s)
		}
		if again := write(t, got); again != text {
			t.Fatalf("schedule %d is written\n%s, was\n%s", i, again, text)
		}
	}
}

// Every field of an action is in the file: none is lost on the way.
func TestEveryFieldOfEveryKindRoundTrips(t *testing.T) {
	full := Action{Who: r1, Peer: c1, Key: 2, As: model.Owner{Node: c1, Boot: 2, Seq: 3}, Msg: model.Msg{Action: 7, N: 3}, Token: maxToken, Value: -5,
		D: 1234567891, TTL: 3 * sec, Delay: 5, Every: 6 * sec, Rate: 7, Rates: [model.MaxNodes]int32{StoreNode: 8, c2: 9}, Note: "n"}
	set := []struct {
		bit  field
		zero func(*Action)
	}{{fieldWho, func(a *Action) { a.Who = 0 }}, {fieldPeer, func(a *Action) { a.Peer = 0 }}, {fieldAs, func(a *Action) { a.As = model.Owner{} }},
		{fieldMsg, func(a *Action) { a.Msg = model.Msg{} }}, {fieldToken, func(a *Action) { a.Token = 0 }}, {fieldKey, func(a *Action) { a.Key = 0 }},
		{fieldValue, func(a *Action) { a.Value = 0 }}, {fieldD, func(a *Action) { a.D = 0 }}, {fieldTTL, func(a *Action) { a.TTL = 0 }},
		{fieldRate, func(a *Action) { a.Rate = 0 }}, {fieldRates, func(a *Action) { a.Rates = [model.MaxNodes]int32{} }},
		{fieldDelay, func(a *Action) { a.Delay = 0 }}, {fieldEvery, func(a *Action) { a.Every = 0 }}}
	for k := KindNone + 1; k < kinds; k++ {
		a := full
		a.ID, a.Kind = int32(k), k
		switch k {
		case Tick, Put, WorkBegin, WorkEnd, Resign:
			a.Who = c2
		}
		for _, s := range set {
			if (fields[k].required|fields[k].optional)&s.bit == 0 {
				s.zero(&a)
			}
		}
		s := &Schedule{Name: "n", Subject: SubjectBuiltin, Config: plainConfig(), Actions: []Action{a}}
		got, err := read(write(t, s))
		if err != nil {
			t.Errorf("%v: %v", k, err)
		} else if got.Actions[0] != a {
			t.Errorf("%v reads back as %v, was %v", k, got.Actions[0], a)
		}
	}
}

func TestAnActionInOneLine(t *testing.T) {
	for want, a := range map[string]Action{
		"advance 1.5s C1 at 900000 ppm":     {Kind: Advance, D: 1500 * sec / 1000, Rates: [model.MaxNodes]int32{c1: 900_000}},
		"tick C1":                           tick(c1),
		"deliver 12.3":                      deliver(12, 3),
		"acquire R1 as C1#2.1 ttl 10s":      {Kind: Acquire, Who: r1, As: model.Owner{Node: c1, Seq: 2, Boot: 1}, TTL: 10 * sec},
		"renew R2 token 7 ttl 1s":           {Kind: Renew, Who: r2, Token: 7, TTL: sec},
		"write R1 token 33 y = 5":           {Kind: Write, Who: r1, Token: 33, Key: 1, Value: 5},
		"put C2 x = 1":                      put(c2, 1),
		"drift store 1100000 ppm":           driftTo(StoreNode, 1_100_000),
		"jump C1 -1m0s":                     {Kind: Jump, Who: c1, D: -60 * sec},
		"cut C1 storage":                    cutLink(c1, StorageNode),
		"delete":                            {Kind: Delete},
		"calm 1m0s delay 100ms every 200ms": calmOf(60*sec, sec/10, sec/5),
	} {
		if got := a.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

const head = `{
  "version": 1,
  "name": "n",
  "subject": "builtin",
  "expect": "none",
  "config": {
    "clients": 2,
    "lease": {
      "ttl": "5s"
    }
  },
  "actions": [
`

// withAction is a file with one action, on line 13.
func withAction(a string) string { return head + "    " + a + "\n  ]\n}\n" }

// in is a file in which old, which must stand there once, is replaced.
func in(t *testing.T, old, new string) string {
	t.Helper()
	text := withAction(`{"id": 1, "do": "heal"}`)
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q does not stand once in the file", old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestMalformedFilesAreRefusedByLineAndField(t *testing.T) {
	if _, err := read(withAction(`{"id": 1, "do": "heal"}`)); err != nil {
		t.Fatalf("the file that all others spoil: %v", err)
	}
	deep := strings.Repeat("[", 1_000_000)
	for name, c := range map[string]struct {
		text string
		want string // all that stands before the reason
		why  string // part of the reason
	}{
		"empty":                            {"", "a.json:1: file: ", "ends too early"},
		"white":                            {"\n\n\n", "a.json:4: file: ", "ends too early"},
		"binary":                           {"\x7fELF\x02\x01\x01\x00", "a.json:1: file: ", "invalid character"},
		"not UTF-8":                        {"\xff\xfe", "a.json:1: file: ", "invalid character"},
		"an array":                         {"[]", "a.json:1: file: ", "a schedule is a JSON object"},
		"a number":                         {"12", "a.json:1: file: ", "a schedule is a JSON object"},
		"not even JSON":                    {"version: 1", "a.json:1: file: ", "invalid character"},
		"two schedules":                    {withAction("") + "{}", "a.json:16: file: ", "stands after"},
		"trailing garbage":                 {withAction("") + "\n\nx", "a.json:18: file: ", "stands after"},
		"truncated after the brace":        {"{", "a.json:1: file: ", "ends too early"},
		"truncated after a name":           {"{\n\"version\"", "a.json:2: version: ", "ends too early"},
		"truncated in the version":         {"{\"version\": ", "a.json:1: version: ", "ends too early"},
		"truncated in the configuration":   {head[:strings.Index(head, "5s")], "a.json:9: config: ", "ends too early"},
		"truncated in the actions":         {head, "a.json:13: actions: ", "ends too early"},
		"truncated in an action":           {head + `{"id": 1, "do": "he`, "a.json:13: actions[0]: ", "ends too early"},
		"truncated after the actions":      {head + "]", "a.json:13: file: ", "ends too early"},
		"a comma too many":                 {withAction(`{"id": 1, "do": "heal"},`), "a.json:", "invalid character ']'"},
		"no comma":                         {withAction("{\"id\": 1, \"do\": \"heal\"}\n{}"), "a.json:14: actions[1]: ", "expected comma"},
		"a slip in the configuration":      {in(t, `"ttl": "5s"`, `"ttl": 5s`), "a.json:9: config: ", "invalid character 's'"},
		"a million deep":                   {deep, "a.json:1: file: ", "a schedule is a JSON object"},
		"a million deep in a field":        {in(t, `"n"`, deep), "a.json:3: name: ", "exceeded max depth"},
		"a million deep in an action":      {withAction(deep), "a.json:13: actions[0]: ", "exceeded max depth"},
		"a million deep in a hidden one":   {in(t, `"clients": 2`, `"x": `+deep), "a.json:7: config: ", "exceeded max depth"},
		"another version":                  {in(t, `"version": 1`, `"version": 2, "new": 3`), "a.json:2: version: ", "2 is not a version this program reads; it reads 1"},
		"no version":                       {in(t, `"version": 1,`, ``), "a.json:16: version: ", "is missing"},
		"a version as text":                {in(t, `"version": 1`, `"version": "1"`), "a.json:2: version: ", "must be a whole number of type int, not string"},
		"a huge version":                   {in(t, `"version": 1`, `"version": 1e999`), "a.json:2: version: ", "must be a whole number of type int, not number 1e999"},
		"a longer one than can be shown":   {in(t, `"version": 1`, `"version": `+strings.Repeat("1", 1<<20)), "a.json:2: version: ", "must be a whole number of type int, not number 111"},
		"no name":                          {in(t, `"name": "n",`, ``), "a.json:16: name: ", "is missing"},
		"no actions":                       {head[:strings.Index(head, ",\n  \"actions")] + "}", "a.json:11: actions: ", "is missing"},
		"actions that are none":            {in(t, "[\n    {\"id\": 1, \"do\": \"heal\"}\n  ]", "{}"), "a.json:12: actions: ", "must be an array"},
		"an action that is none":           {withAction(`7`), "a.json:13: actions[0]: ", "must be an object, not number"},
		"a null action":                    {withAction(`null`), "a.json:13: actions[0]: ", "must not be null"},
		"an unknown subject":               {in(t, "builtin", "mutants"), "a.json:4: subject: ", `"mutants" is none of`},
		"an unknown invariant":             {in(t, `"none"`, `"liveness"`), "a.json:5: expect: ", `"liveness" is no invariant`},
		"an invariant as a number":         {in(t, `"none"`, `3`), "a.json:5: expect: ", "must be a string, not number"},
		"a waiver for none":                {in(t, `"expect": "none",`, `"expect": "none", "waives": ["none"],`), "a.json:5: waives: ", "none holds"},
		"a waiver for what always holds":   {in(t, `"expect": "none",`, `"expect": "none", "waives": ["storage-safety"],`), "a.json:5: waives: ", "storage-safety holds whatever"},
		"an unknown waiver":                {in(t, `"expect": "none",`, `"expect": "none", "waives": ["x"],`), "a.json:5: waives: ", `"x" is no invariant`},
		"an unknown field":                 {in(t, `"name": "n",`, `"name": "n", "seed": 1,`), "a.json:3: seed: ", "no such field"},
		"an unknown field of two lines":    {in(t, `"name": "n",`, `"name": "n", "a\nb": 1,`), `a.json:3: "a\nb": `, "no such field"},
		"an unknown field of great length": {in(t, `"name": "n",`, `"name": "n", "`+strings.Repeat("ö", 1<<20)+`": 1,`), "a.json:3: öö", "no such field"},
		"a field twice":                    {in(t, `"name": "n",`, "\"name\": \"n\",\n\"name\": \"m\","), "a.json:4: name: ", "stands twice"},
		"a field twice, the second bad":    {in(t, `"name": "n",`, "\"name\": \"n\",\n\"name\": 7,"), "a.json:4: name: ", "stands twice"},
		"config: unknown field":            {in(t, `"clients": 2`, `"clients": 2, "clocks": 3`), "a.json:7: config.clocks: ", "no such field"},
		"config: twice":                    {in(t, `"clients": 2,`, "\"clients\": 2,\n\"clients\": 3,"), "a.json:8: config.clients: ", "stands twice"},
		"config: a wrong type":             {in(t, `"clients": 2`, `"clients": "two"`), "a.json:7: config.clients: ", "must be a whole number of type int, not string"},
		"config: a fraction":               {in(t, `"clients": 2`, `"clients": 2.5`), "a.json:7: config.clients: ", "not number 2.5"},
		"config: too many clients":         {in(t, `"clients": 2`, `"clients": 5`), "a.json:7: config.clients: ", "5 is not between 1 and 4"},
		"config: another storage":          {in(t, `"clients": 2`, `"clients": 2, "storage": "paper"`), "a.json:7: config.storage: ", `"paper" is neither`},
		"config: a negative token":         {in(t, `"clients": 2`, `"clients": 2, "firstToken": -1`), "a.json:7: config.firstToken: ", "not number -1"},
		"config: a huge token":             {in(t, `"clients": 2`, `"clients": 2, "firstToken": 9223372036854775808`), "a.json:7: config.firstToken: ", "is above"},
		"config: an offset of no node":     {in(t, `"clients": 2`, `"clients": 2, "offsets": {"C9": "1s"}`), "a.json:7: config.offsets: ", `"C9" is no node`},
		"config: an offset that is none":   {in(t, `"clients": 2`, `"clients": 2, "offsets": {"C1": "late"}`), "a.json:7: config.offsets.C1: ", `"late" is not a duration`},
		"config: an offset out of bounds":  {in(t, `"clients": 2`, "\"clients\": 2, \"offsets\": {\n\"C1\": \"25h\"}"), "a.json:8: config.offsets.C1: ", "not within"},
		"config: an offset twice":          {in(t, `"clients": 2`, "\"clients\": 2, \"offsets\": {\"C1\": \"1s\",\n\"C1\": \"2s\"}"), "a.json:8: config.offsets.C1: ", "stands twice"},
		"lease: unknown field":             {in(t, `"ttl": "5s"`, `"ttl": "5s", "tll": "6s"`), "a.json:9: config.lease.tll: ", "no such field"},
		"lease: a number for a duration":   {in(t, `"ttl": "5s"`, `"ttl": 5`), "a.json:9: config.lease.ttl: ", "must be a string, not number"},
		"lease: no duration":               {in(t, `"ttl": "5s"`, `"ttl": "5 seconds"`), "a.json:9: config.lease.ttl: ", `"5 seconds" is not a duration`},
		"lease: no TTL":                    {in(t, `"ttl": "5s"`, ``), "a.json:8: config.lease.ttl: ", "must be set"},
		"lease: no window":                 {in(t, `"ttl": "5s"`, "\"ttl\": \"5s\",\n\"safetyMargin\": \"5s\""), "a.json:9: config.lease.ttl: ", "leaves no time to act: window = ttl - ttl*maxDriftRate - safetyMargin = 5s"},
		"lease: a drift of 1":              {in(t, `"ttl": "5s"`, "\"ttl\": \"5s\",\n\"maxDriftRate\": 1"), "a.json:10: config.lease.maxDriftRate: ", "not in [0, 1)"},
		"lease: twice":                     {in(t, `"ttl": "5s"`, "\"ttl\": \"5s\",\n\"ttl\": \"6s\""), "a.json:10: config.lease.ttl: ", "stands twice"},
		"in other letters":                 {in(t, `"name": "n",`, `"Name": "n",`), "a.json:3: Name: ", "no such field"},
		"no expectation":                   {in(t, `"none"`, `null`), "a.json:5: expect: ", "must not be null"},
		"no waiver":                        {in(t, `"expect": "none",`, `"expect": "none", "waives": [null],`), "a.json:5: waives: ", "must not be null"},
		"config: in other letters":         {in(t, `"clients": 2`, `"clients": 2, "Clients": 3`), "a.json:7: config.Clients: ", "no such field"},
		"config: null":                     {in(t, `"clients": 2`, `"clients": 2, "storage": null`), "a.json:7: config.storage: ", "must not be null"},
		"config: two offsets of no node":   {in(t, `"clients": 2`, `"clients": 2, "offsets": {"C9": "1s", "C7": "x", "C8": "1s"}`), "a.json:7: config.offsets: ", `"C7" is no node`},
		"lease: in other letters":          {in(t, `"ttl": "5s"`, "\"ttl\": \"5s\",\n\"TTL\": \"1s\""), "a.json:10: config.lease.TTL: ", "no such field"},
		"lease: null":                      {in(t, `"ttl": "5s"`, "\"ttl\": \"5s\",\n\"lockDelay\": null"), "a.json:10: config.lease.lockDelay: ", "must not be null"},
		"action: in other letters":         {withAction("{\"id\": 2,\n\"ID\": 1, \"DO\": \"heal\", \"do\": \"heal\"}"), "a.json:14: actions[0].ID: ", "no such field"},
		"action: a null value":             {withAction(`{"id": 1, "do": "write", "who": "R1", "token": 3, "value": null}`), "a.json:13: actions[0].value: ", "must not be null"},
		"action: a null rate":              {withAction(`{"id": 1, "do": "advance", "d": "1s", "rates": {"C1": null}}`), "a.json:13: actions[0].rates.C1: ", "must not be null"},
		"action: two rates of no node":     {withAction(`{"id": 1, "do": "advance", "d": "1s", "rates": {"c": 1, "a": 1, "b": 1}}`), "a.json:13: actions[0].rates: ", `"a" is no node`},
		"action: no kind":                  {withAction(`{"id": 1}`), "a.json:13: actions[0].do: ", `no action ""`},
		"action: an unknown kind":          {withAction(`{"id": 1, "do": "explode"}`), "a.json:13: actions[0].do: ", `no action "explode"`},
		"action: the kind that is none":    {withAction(`{"id": 1, "do": "none"}`), "a.json:13: actions[0].do: ", `no action "none"`},
		"action: no id":                    {withAction(`{"do": "heal"}`), "a.json:13: actions[0].id: ", "0 is not a number above 0 of its own"},
		"action: an id twice":              {withAction("{\"id\": 1, \"do\": \"heal\"},\n{\"id\": 1, \"do\": \"heal\"}"), "a.json:14: actions[1].id: ", "1 is not a number above 0 of its own"},
		"action: a huge id":                {withAction(`{"id": 2147483648, "do": "heal"}`), "a.json:13: actions[0].id: ", "whole number of type int32, not number 2147483648"},
		"action: unknown field":            {withAction(`{"id": 1, "do": "heal", "when": 3}`), "a.json:13: actions[0].when: ", "no such field"},
		"action: a field of other kinds":   {withAction(`{"id": 1, "do": "heal", "who": "C1"}`), "a.json:13: actions[0].who: ", "heal has no such field"},
		"action: a token it has not":       {withAction(`{"id": 1, "do": "tick", "who": "C1", "token": 0}`), "a.json:13: actions[0].token: ", "tick has no such field"},
		"action: twice, over lines":        {withAction("{\n\"id\": 1,\n\"do\": \"heal\",\n\"do\": \"tick\"}"), "a.json:16: actions[0].do: ", "stands twice"},
		"action: rates twice":              {withAction(`{"id": 1, "do": "advance", "d": "1s", "rates": {"C1": 1, "C1": 2}}`), "a.json:13: actions[0].rates.C1: ", "stands twice"},
		"action: missing who":              {withAction(`{"id": 1, "do": "tick"}`), "a.json:13: actions[0].who: ", "is missing; tick needs it"},
		"action: missing ttl":              {withAction(`{"id": 1, "do": "acquire", "who": "R1"}`), "a.json:13: actions[0].ttl: ", "is missing; acquire needs it"},
		"action: missing token":            {withAction(`{"id": 1, "do": "fence", "who": "R1"}`), "a.json:13: actions[0].token: ", "is missing; fence needs it"},
		"action: missing ppm":              {withAction(`{"id": 1, "do": "drift", "who": "C1"}`), "a.json:13: actions[0].ppm: ", "is missing; drift needs it"},
		"action: missing msg":              {withAction(`{"id": 1, "do": "drop"}`), "a.json:13: actions[0].msg: ", "is missing; drop needs it"},
		"action: missing peer":             {withAction(`{"id": 1, "do": "cut", "who": "C1"}`), "a.json:13: actions[0].peer: ", "is missing; cut needs it"},
		"action: missing d":                {withAction(`{"id": 1, "do": "advance"}`), "a.json:13: actions[0].d: ", "is missing; advance needs it"},
		"action: a client not in the run":  {withAction(`{"id": 1, "do": "tick", "who": "C3"}`), "a.json:13: actions[0].who: ", "C3 is no node of this run: there are store, storage, C1 to C2, R1 and R2"},
		"action: no node":                  {withAction(`{"id": 1, "do": "tick", "who": "nobody"}`), "a.json:13: actions[0].who: ", `"nobody" is no node`},
		"action: the wrong party":          {withAction(`{"id": 1, "do": "tick", "who": "store"}`), "a.json:13: actions[0].who: ", "only a client can tick, not store"},
		"action: no holder":                {withAction(`{"id": 1, "do": "acquire", "who": "R1", "ttl": "1s", "as": "C1"}`), "a.json:13: actions[0].as: ", `"C1" is no holder such as C1#2`},
		"action: a holder of no node":      {withAction(`{"id": 1, "do": "acquire", "who": "R1", "ttl": "1s", "as": "C9#1"}`), "a.json:13: actions[0].as: ", `"C9#1" is no holder`},
		"action: an incarnation 0":         {withAction(`{"id": 1, "do": "acquire", "who": "R1", "ttl": "1s", "as": "C1#0"}`), "a.json:13: actions[0].as: ", `"C1#0" is no holder`},
		"action: a huge restart":           {withAction(`{"id": 1, "do": "acquire", "who": "R1", "ttl": "1s", "as": "C1#1.65536"}`), "a.json:13: actions[0].as: ", `"C1#1.65536" is no holder`},
		"action: a store as holder":        {withAction(`{"id": 1, "do": "acquire", "who": "R1", "ttl": "1s", "as": "store#1"}`), "a.json:13: actions[0].as: ", "store#1 is no holder"},
		"action: no message":               {withAction(`{"id": 1, "do": "drop", "msg": "12"}`), "a.json:13: actions[0].msg: ", `"12" is no message`},
		"action: message 0":                {withAction(`{"id": 1, "do": "drop", "msg": "0.0"}`), "a.json:13: actions[0].msg: ", `"0.0" is no message`},
		"action: a huge message":           {withAction(`{"id": 1, "do": "drop", "msg": "99999999999.0"}`), "a.json:13: actions[0].msg: ", `"99999999999.0" is no message`},
		"action: a key there is not":       {withAction(`{"id": 1, "do": "read", "who": "R1", "key": "v"}`), "a.json:13: actions[0].key: ", `"v" is none of x, y, z and w`},
		"action: a token above all":        {withAction(`{"id": 1, "do": "fence", "who": "R1", "token": 4611686018427387905}`), "a.json:13: actions[0].token: ", "is above 4611686018427387904"},
		"action: a negative token":         {withAction(`{"id": 1, "do": "fence", "who": "R1", "token": -1}`), "a.json:13: actions[0].token: ", "not number -1"},
		"action: no duration":              {withAction(`{"id": 1, "do": "advance", "d": "soon"}`), "a.json:13: actions[0].d: ", `"soon" is not a duration`},
		"action: a day at once":            {withAction(`{"id": 1, "do": "advance", "d": "24h"}`), "a.json:13: actions[0].d: ", "24h0m0s is not between 0s and 1h0m0s"},
		"action: back in time":             {withAction(`{"id": 1, "do": "advance", "d": "-1ns"}`), "a.json:13: actions[0].d: ", "-1ns is not between"},
		"action: a rate of no node":        {withAction(`{"id": 1, "do": "advance", "d": "1s", "rates": {"me": 1}}`), "a.json:13: actions[0].rates: ", `"me" is no node`},
		"action: a rate that is none":      {withAction(`{"id": 1, "do": "advance", "d": "1s", "rates": {"C1": "fast"}}`), "a.json:13: actions[0].rates", "must be a whole number of type int32, not string"},
		"action: a rate too fast":          {withAction(`{"id": 1, "do": "drift", "who": "C1", "ppm": 2000001}`), "a.json:13: actions[0].ppm: ", "2000001 is not between 1 and 2000000"},
		"action: calm without end":         {withAction(`{"id": 1, "do": "calm", "d": "1h"}`), "a.json:13: actions[0].every: ", "more than 262144 events"},
		"action: a word of great length":   {withAction(`{"id": 1, "do": "` + strings.Repeat("a", 1<<20) + `"}`), "a.json:13: actions[0].do: ", "no action"},
		"action: a word of two lines":      {withAction(`{"id": 1, "do": "a\nb"}`), "a.json:13: actions[0].do: ", `no action "a\nb"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := read(c.text)
			if err == nil {
				t.Fatalf("accepted: %+v", s)
			}
			if s != nil {
				t.Errorf("a schedule comes with the error %v", err)
			}
			var fe *FieldError
			if !errors.As(err, &fe) || fe.File != "a.json" || fe.Line == 0 || fe.Field == "" {
				t.Errorf("the error is a %T: %+v", err, err)
			}
			text := err.Error()
			if !strings.HasPrefix(text, c.want) || !strings.Contains(text, c.why) || strings.Contains(text, "\n") || len(text) > 600 {
				t.Errorf("error  %.700s\nwanted %s ... %s", text, c.want, c.why)
			}
		})
	}
}

func TestAFileOfTooManyActionsIsRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	for i := range MaxActions + 1 {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"id":%d,"do":"heal"}`, i+1)
	}
	b.WriteString("]}")
	_, err := read(b.String())
	if err == nil || !strings.HasPrefix(err.Error(), "a.json:100013: actions[100000]: ") {
		t.Errorf("error %v", err)
	}
}

// Whatever a file holds, running it takes bounded time and memory: what it may
// come to is added up beforehand.
func TestAFileThatComesToTooManyEventsIsRefused(t *testing.T) {
	// R1 holds the lease, so that all others ask in vain at each tick.
	calm := func(clients int, d string) string {
		text := withAction(`{"id": 1, "do": "acquire", "who": "R1", "ttl": "1h"}, {"id": 2, "do": "deliver", "msg": "1.0"},` + "\n" +
			fmt.Sprintf(`{"id": 3, "do": "calm", "d": %q, "every": "1ms"}`, d))
		text = strings.Replace(text, `"ttl": "5s"`, `"ttl": "5s", "retryInterval": "1ns"`, 1)
		return strings.Replace(text, `"clients": 2`, fmt.Sprintf(`"clients": %d`, clients), 1)
	}
	// 3 events for each of 4 clients and ticks: 1<<18 are 21845 ticks.
	if _, err := read(calm(4, "21.85s")); err == nil || !strings.HasPrefix(err.Error(), "a.json:14: actions[2].every: ") {
		t.Errorf("21850 ticks of 4 clients: %v", err)
	}
	if _, err := read(calm(1, "80s")); err != nil {
		t.Errorf("80000 ticks of one client: %v", err)
	}
	s, err := read(calm(4, "21.8s"))
	if err != nil {
		t.Fatalf("21800 ticks of 4 clients: %v", err)
	}
	var trace Trace
	s.Run(Builtin(), Options{Trace: &trace})
	if n := len(trace.Events); n > maxEvents || n < maxEvents*9/10 {
		t.Errorf("it comes to %d events; it was let in for nearly %d", n, maxEvents)
	}
	// Clocks that change and change back.
	var b strings.Builder
	b.WriteString(head)
	for i := range 20_000 {
		fmt.Fprintf(&b, `{"id":%d,"do":"advance","d":"1ns","rates":{"store":1,"storage":2,"C1":3,"C2":4,"R1":5,"R2":6}},`+"\n", i+1)
	}
	b.WriteString(`{"id":50000,"do":"heal"}]}`)
	if _, err := read(b.String()); err == nil || !strings.Contains(err.Error(), "more than 262144 events up to here") {
		t.Errorf("280000 changes of clocks: %v", err)
	}
}

// However long the input, what is read and kept is bounded.
func TestAFileThatNeverEndsIsRefused(t *testing.T) {
	endless := iotest.DataErrReader(io.MultiReader(strings.NewReader(head+`{"id": 1, "do": "heal", "note": "`), forever('x')))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadSchedule(endless, "a.json")
	runtime.ReadMemStats(&after)
	if err == nil || err.Error() != "a.json: file: is larger than 16 MiB" {
		t.Errorf("error %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16*maxFile {
		t.Errorf("it took %d MiB to find out", used>>20)
	}
}

type forever byte

func (f forever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(f)
	}
	return len(b), nil
}

func TestAReadErrorIsPassedOn(t *testing.T) {
	_, err := ReadSchedule(iotest.ErrReader(io.ErrClosedPipe), "a.json")
	if !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "a.json: ") {
		t.Errorf("error %v", err)
	}
}

func TestWhatItReadsIsAFileForPeople(t *testing.T) {
	s := &Schedule{Name: "zombie", Shows: "refused: 33 < 34", Subject: SubjectBuiltin, Config: plainConfig(), Actions: number([]Action{tick(c1), deliver(1, 0), advance(1500 * sec / 1000), put(c1, 0)})}
	s.Actions[2].Note = "a & b"
	want := `{
  "version": 1,
  "name": "zombie",
  "shows": "refused: 33 < 34",
  "subject": "builtin",
  "expect": "none",
  "config": {
    "clients": 2,
    "lease": {
      "ttl": "10s",
      "renewFraction": 0.2,
      "retryInterval": "1s"
    }
  },
  "actions": [
    {"id":1,"do":"tick","who":"C1"},
    {"id":2,"do":"deliver","msg":"1.0"},
    {"id":3,"do":"advance","d":"1.5s","note":"a & b"},
    {"id":4,"do":"put","who":"C1","key":"x","value":0}
  ]
}
`
	if got := write(t, s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !json.Valid([]byte(want)) {
		t.Error("and it is no JSON")
	}
}

func FuzzReadSchedule(f *testing.F) {
	f.Add([]byte(withAction(`{"id": 1, "do": "heal"}`)))
	f.Add([]byte(withAction("{\"id\": 1, \"do\": \"advance\", \"d\": \"1s\", \"rates\": {\"C1\": 900000}},\n{\"id\": 2, \"do\": \"calm\", \"d\": \"60s\", \"every\": \"1s\"}")))
	f.Add([]byte("{"))
	f.Add([]byte(strings.Repeat("[", 20_000)))
	for seed := range uint64(4) {
		f.Add([]byte(write(f, scrambled(seed, 40))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSchedule(bytes.NewReader(b), "a.json")
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "a.json:") || strings.Contains(text, "\n") || len(text) > 600 {
				t.Fatalf("error %q", text)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("read, but not valid: %v", err)
		}
		again, err := ReadSchedule(strings.NewReader(write(t, s)), "a.json")
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("reads back as %+v, %v; was %+v", again, err, s)
		}
		ticks := int64(0)
		for i := range s.Actions {
			if a := &s.Actions[i]; a.Kind == Calm {
				ticks += int64(a.D / a.every())
			}
		}
		if len(s.Actions) > 1000 || ticks > 1000 {
			return // it would only take long
		}
		var trace Trace
		s.Run(Builtin(), Options{Monitor: true, Lockstep: true, Trace: &trace})
		trace.WriteTo(io.Discard)
	})
}
