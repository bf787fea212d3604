package linearizability

import (
	"fmt"
	"strings"
	"testing"
)

// verdicts checks histories in EDN, of which the verdicts were worked out by hand.
func verdicts(t *testing.T, m Model, cases []verdictCase) {
	t.Helper()
	for _, c := range cases {
		h := mustRead(t, c.edn)
		v := mustCheck(t, h, Options{Model: m, TTL: 0})
		if got := v.Linearizable(); got != map[bool]Result{true: Holds, false: Violated}[c.legal] {
			t.Errorf("%s: %s: got %s, want legal %v: %v", m, c.rule, got, c.legal, v)
		}
	}
}

type verdictCase struct {
	rule  string
	legal bool
	edn   string
}

// lockEDN is a history of a lock, an operation a word: process, a for acquire
// or r for release, then what it came to: nothing for ok, ? for unknown, ! for
// failed; and a fence after a colon.
func lockEDN(words string) string {
	var b strings.Builder
	for _, word := range strings.Fields(words) {
		word, fence, fenced := strings.Cut(word, ":")
		process, f, end := word[:1], map[byte]string{'a': "acquire", 'r': "release"}[word[1]], map[string]string{"": "ok", "?": "info", "!": "fail"}[word[2:]]
		fmt.Fprintf(&b, "{:process %s, :type :invoke, :f :%s, :value nil}\n{:process %s, :type :%s, :f :%s, :value nil", process, f, process, end, f)
		if fenced {
			fmt.Fprintf(&b, ", :fence %s", fence)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func TestReentrantMutexNestsForOneOwner(t *testing.T) {
	verdicts(t, Model{Name: ModelReentrantMutex, N: 2}, []verdictCase{
		{"twice", true, lockEDN("0a 0a 0r 0r 1a")},
		{"not three times", false, lockEDN("0a 0a 0a")},
		{"each release undoes one", false, lockEDN("0a 0a 0r 1a")},
		{"no more releases than acquires", false, lockEDN("0a 0r 0r")},
		{"not by another", false, lockEDN("0a 1a")},
		{"not released by another", false, lockEDN("0a 1r")},
		{"an unknown release may have been", true, lockEDN("0a 0a 0r 0r? 1a")},
		{"a failed one was not", false, lockEDN("0a 0r! 1a")},
	})
	verdicts(t, Model{Name: ModelReentrantMutex}, []verdictCase{
		{"without a bound", true, lockEDN("0a 0a 0a 0a 0a 0r 0r 0r 0r 0r 1a")},
	})
}

func TestFencedMutexRaisesTheFence(t *testing.T) {
	verdicts(t, Model{Name: ModelFencedMutex}, []verdictCase{
		{"higher", true, lockEDN("0a:1 0r 1a:7 1r 0a:8")},
		{"not the same", false, lockEDN("0a:1 0r 1a:1")},
		{"not lower than any before", false, lockEDN("0a:5 0r 1a:0 1r 0a:4")},
		{"0 is not known", true, lockEDN("0a:0 0r 1a:0 1r 0a 0r 1a:1")},
		{"not nested, whatever the fence", false, lockEDN("0a:1 0a:1")},
		{"released by its owner", false, lockEDN("0a:1 1r")},
	})
}

func TestReentrantFencedMutexKeepsTheFence(t *testing.T) {
	verdicts(t, Model{Name: ModelReentrantFencedMutex, N: 3}, []verdictCase{
		{"the same fence", true, lockEDN("0a:4 0a:4 0a:0 0r 0r 0r 1a:5")},
		{"not another", false, lockEDN("0a:4 0a:5")},
		{"nested, the first to be told", true, lockEDN("0a:0 0a:4 0a:4")},
		{"which is above those before", false, lockEDN("1a:4 1r 0a:0 0a:4")},
		{"a nested 0 forgets nothing", false, lockEDN("0a:4 0a:0 0a:5")},
		{"nor does a release but the last", false, lockEDN("0a:4 0a:4 0r 0a:5")},
		{"not four times", false, lockEDN("0a 0a 0a 0a")},
	})
}

func TestPermitsAreCounted(t *testing.T) {
	verdicts(t, Model{Name: ModelPermits, N: 2}, []verdictCase{
		{"two at once", true, lockEDN("0a 1a")},
		{"not three", false, lockEDN("0a 1a 2a")},
		{"three, of which one was given back", true, lockEDN("0a 1a 2r 2a")},
		{"none is given back that is not held", false, lockEDN("0a 0r 0r")},
		{"by an owner who holds none", false, `{:process 0, :type :invoke, :f :acquire, :owner "a"}
{:process 0, :type :ok, :f :acquire}
{:process 1, :type :invoke, :f :release, :owner "b"}
{:process 1, :type :ok, :f :release}`},
		{"two by one owner, from two processes", true, `{:process 0, :type :invoke, :f :acquire, :owner "a"}
{:process 0, :type :ok, :f :acquire}
{:process 1, :type :invoke, :f :acquire, :owner "a"}
{:process 1, :type :ok, :f :acquire}
{:process 0, :type :invoke, :f :release, :owner "a"}
{:process 0, :type :ok, :f :release}
{:process 0, :type :invoke, :f :release, :owner "a"}
{:process 0, :type :ok, :f :release}`},
	})
}

// TestOwnersOfHazelcast: its test names the client in the value of what
// returned, and where the outcome is unknown only a number of the call.
func TestOwnersOfHazelcast(t *testing.T) {
	const unknown = `{:process 0, :type :invoke, :f :acquire, :value "u1"}
{:process 0, :type :info, :f :acquire, :value "u1", :error :io-exception}
{:process 5, :type :invoke, :f :release, :value "u2"}
{:process 5, :type :ok, :f :release, :value {:client "c1", :uid "u2", :fence 0}}
`
	const held = `{:process 1, :type :invoke, :f :acquire, :value "u3"}
{:process 1, :type :ok, :f :acquire, :value {:client "c2", :uid "u3", :fence 12}}
{:process 2, :type :invoke, :f :release, :value "u4"}
{:process 2, :type :ok, :f :release, :value {:client "c3", :uid "u4", :fence 0}}
`
	for _, name := range []string{ModelOwnerMutex, ModelReentrantMutex, ModelFencedMutex, ModelReentrantFencedMutex} {
		verdicts(t, Model{Name: name}, []verdictCase{
			{"an acquire of which nobody knows may be the client's who releases", true, unknown},
			{"one client releases not for another", false, held},
			{"not-lock-owner is no evidence", true, strings.Replace(unknown, ":type :ok, :f :release, :value {:client \"c1\", :uid \"u2\", :fence 0}", ":type :fail, :f :release, :error :not-lock-owner", 1)},
		})
	}
	m, why, err := ChooseFrom(eventsOf(mustRead(t, held)))
	if err != nil || m.Name != ModelFencedMutex {
		t.Errorf("chose %v, %s, %v; want a fenced mutex", m, why, err)
	}
}

func TestTransactionsTakeEffectAsAWhole(t *testing.T) {
	line := func(p int, kind, value string) string {
		return fmt.Sprintf("{:process %d, :type :%s, :f :txn, :value %s}\n", p, kind, value)
	}
	op := func(p int, value string) string { return line(p, "invoke", value) + line(p, "ok", value) }
	overlap := line(0, "invoke", "[[:w x 1] [:w y 1]]")
	verdicts(t, Model{Name: ModelMultiRegister}, []verdictCase{
		{"both", true, op(0, "[[:w x 1] [:w y 2]]") + op(1, "[[:r x 1] [:r y 2]]")},
		{"not the half", false, overlap + op(1, "[[:r x 1] [:r y nil]]") + line(0, "ok", "[[:w x 1] [:w y 1]]")},
		{"nor of an unknown one", false, overlap + op(1, "[[:r x 1] [:r y nil]]")},
		{"which may have been", true, overlap + op(1, "[[:r x 1] [:r y 1]]")},
		{"or not", true, overlap + op(1, "[[:r x nil] [:r y nil]]")},
		{"its reads find its writes", true, op(0, "[[:r x nil] [:w x 3] [:r x 3]]")},
		{"and nothing else", false, op(0, "[[:w x 3] [:r x nil]]")},
		{"two reads find one value", false, op(0, "[[:w x 3]]") + op(1, "[[:r x 3] [:r x nil]]")},
	})
	verdicts(t, Model{Name: ModelMultiRegister, Init: Int(0)}, []verdictCase{
		{"from 0", true, op(0, "[[:r x 0] [:r y nil]]")},
		{"not from 1", false, op(0, "[[:r x 1]]")},
		{"maps are read and written", true, `{:process 0, :type :invoke, :f :write, :value {x 1, y 2}}
{:process 0, :type :ok, :f :write, :value {x 1, y 2}}
{:process 0, :type :invoke, :f :read, :value nil}
{:process 0, :type :ok, :f :read, :value {x 1, y 2}}`},
		{"as a whole too", false, `{:process 0, :type :invoke, :f :write, :value {x 1, y 2}}
{:process 0, :type :ok, :f :write, :value {x 1, y 2}}
{:process 0, :type :invoke, :f :read, :value nil}
{:process 0, :type :ok, :f :read, :value {x 1, y 0}}`},
	})
}

func TestCASStorageComparesValuesAndVersions(t *testing.T) {
	op := func(f, call, end string) string {
		typ, rest, _ := strings.Cut(end, " ")
		return fmt.Sprintf("{:process 0, :type :invoke, :f :%s, :key db, :k x, %s}\n{:process 0, :type :%s, :f :%s, %s}\n", f, call, typ, f, rest)
	}
	lost := "{:process 1, :type :invoke, :f :write, :key db, :k x, :v 9}\n"
	verdicts(t, Model{Name: ModelCASStorage}, []verdictCase{
		{"from nothing", true, op("write", ":v 1, :from 0", "ok :version 1") + op("read", "", "ok :v 1, :version 1")},
		{"once only", false, op("write", ":v 1, :from 0", "ok") + op("write", ":v 2, :from 0", "ok")},
		{"the other is a mismatch", true, op("write", ":v 1, :from 0", "ok") + op("write", ":v 2, :from 0", "fail :error :mismatch, :v 1")},
		{"which a match is not", false, op("write", ":v 1, :from 0", "fail :error :mismatch")},
		{"unless somebody wrote", true, lost + op("write", ":v 1, :from 0", "fail :error :mismatch")},
		{"by value", true, op("write", ":v 1, :expect nil", "ok") + op("write", ":v 2, :expect 1", "ok")},
		{"by another value", false, op("write", ":v 1, :expect nil", "ok") + op("write", ":v 2, :expect 2", "ok")},
		{"versions rise", false, op("write", ":v 1", "ok :version 5") + op("write", ":v 2", "ok :version 5")},
		{"those not told too", false, op("write", ":v 1", "ok :version 5") + op("write", ":v 2", "ok") + op("write", ":v 3", "ok :version 6")},
		{"a refused version is not the one", false, op("write", ":v 1", "ok") + op("write", ":v 2, :from 3", "fail :error :mismatch") + op("read", "", "ok :v 1, :version 3")},
	})
}

func eventsOf(h History) func(yield func(*Event) bool) {
	return func(yield func(*Event) bool) {
		for i := range h.Events {
			if !yield(&h.Events[i]) {
				return
			}
		}
	}
}
