package linearizability

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// chosen is what Choose makes of operations that all succeed: f, the fields of
// the call, and those of the return after a bar.
func chosen(t *testing.T, ops ...string) (Model, string, error) {
	t.Helper()
	var b strings.Builder
	for i, op := range ops {
		call, ret, _ := strings.Cut(op, "|")
		f, call, _ := strings.Cut(strings.TrimSpace(call), " ")
		fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :%s, %s}\n{:process %d, :type :ok, :f :%s, %s}\n", i, f, call, i, f, ret)
	}
	if len(ops) == 0 {
		return Choose(&History{})
	}
	h := mustRead(t, b.String())
	return Choose(&h)
}

func TestChooseByOperationsAndFields(t *testing.T) {
	for want, ops := range map[string][]string{
		"register(nil)":          {"write :value 1", "read :value nil | :value 1"},
		"register(0)":            {"read :value nil | :value 0", "write :value 1"},
		"cas-register(nil)":      {"write :value 1", "cas :value [1 2]", "read :value nil | :value 2"},
		"cas-register(3)":        {"cas :value [3 2]", "read :value nil | :value 2"},
		"multi-register(nil)":    {"txn :value [[:r 1 nil] [:w 1 2]] | :value [[:r 1 nil] [:w 1 2]]"},
		"multi-register(0)":      {"txn :value [[:r 1 nil]] | :value [[:r 1 0]]", "txn :value [[:w 1 2]]"},
		"mutex":                  {"acquire :value nil", "release :value nil"},
		"owner-mutex":            {"acquire :owner a", "release :owner a"},
		"fenced-mutex":           {"acquire :owner a | :fence 1", "release :owner a", "acquire :owner a | :fence 2"},
		"reentrant-fenced-mutex": {"acquire :owner a | :fence 1", "acquire :owner a | :fence 1"},
		"kv":                     {"put :key 1, :value a", "append :key 1, :value b", "get :key 1 | :value ab"},
		"storage":                {"write :token 1, :k a, :v 1", "fence :token 2", "read :k a | :v 1"},
		"cas-storage":            {"write :k a, :v 1, :from 0 | :version 1", "read :k a | :v 1"},
		"lease":                  {"acquire :owner a, :ttl 5 | :token 1", "release :owner a, :token 1"},
		"fencepost":              {"acquire :owner a, :ttl 5 | :token 1", "write :k a, :v 1, :token 1"},
	} {
		m, why, err := chosen(t, ops...)
		if err != nil || m.String() != want {
			t.Errorf("%q: chose %v, %v, want %s", ops, m, err, want)
		} else if !strings.Contains(why, ": "+want) {
			t.Errorf("%q: the reason %q does not name %s", ops, why, want)
		}
	}
}

// TestChooseNeverTakesALaxerModelToPass: who holds a mutex twice has broken it,
// and what was read long after the first write is no initial value.
func TestChooseNeverTakesALaxerModelToPass(t *testing.T) {
	m, why, err := chosen(t, "acquire :value nil", "acquire :value nil")
	if err != nil || m.Name != ModelMutex || !strings.Contains(why, "permits(N)") {
		t.Errorf("two hold a lock: chose %v, %q, %v; want a mutex, and permits mentioned", m, why, err)
	}
	if m, _, err := chosen(t, "write :value 1", "read :value nil | :value 7"); err != nil || m.String() != "register(nil)" {
		t.Errorf("7 was read after 1 had been written: chose %v, %v, want register(nil)", m, err)
	}
}

func TestChooseLeavesOpenWhatIsOpen(t *testing.T) {
	for _, c := range []struct {
		ops   []string
		names []string // among the candidates
	}{
		{[]string{"acquire :owner a | :token 1", "release :owner a"}, []string{"lease", "fenced-mutex"}},
		{[]string{"acquire :owner a", "acquire :owner a"}, []string{"reentrant-mutex(N)", "owner-mutex"}},
		{[]string{"acquire :owner a | :fence 1", "acquire :owner a | :fence 2"}, []string{"reentrant-fenced-mutex(N)", "fenced-mutex"}},
		{[]string{"acquire :owner a", "read :value nil | :value 1"}, []string{"register", "owner-mutex"}},
		{[]string{"enqueue :value 1"}, nil},
		{nil, nil},
	} {
		var open *AmbiguousError
		if _, _, err := chosen(t, c.ops...); !errors.As(err, &open) {
			t.Errorf("%q: got %v, want an *AmbiguousError", c.ops, err)
			continue
		}
		for _, name := range c.names {
			if !slices.ContainsFunc(open.Candidates, func(s string) bool { return strings.HasPrefix(s, name) }) {
				t.Errorf("%q: the candidates %q lack %s", c.ops, open.Candidates, name)
			}
		}
		if (len(c.names) == 0) != (len(open.Candidates) == 0) {
			t.Errorf("%q: got the candidates %q, want %q", c.ops, open.Candidates, c.names)
		}
	}
}

func TestChooseReadsNoMoreThanItsBound(t *testing.T) {
	n := 0
	e := Event{Process: 0, Type: Invoke, F: "acquire"}
	m, _, err := ChooseFrom(func(yield func(*Event) bool) {
		for yield(&e) {
			n++
			e.Type = Type(n % 2) // Invoke, OK
		}
	})
	if err != nil || m.Name != ModelMutex || n >= chooseEvents {
		t.Errorf("chose %v, %v after %d events, want a mutex after fewer than %d", m, err, n, chooseEvents)
	}
}
