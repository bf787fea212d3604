package script_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"sync"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// careless is a store whose renewals compare the token, and not the holder. (It
// is far from complete, but the scripts below ask for no more.)
type careless struct {
	clk     clock.Clock
	mu      sync.Mutex
	holder  lease.Holder
	token   lease.Token
	expires time.Duration
}

func open(e kit.Env) lease.Store { return &careless{clk: e.Clock} }

func (s *careless) Acquire(_ context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clk.Now()
	switch {
	case now >= s.expires:
		s.token, s.holder = s.token+1, h
	case h != s.holder:
		return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: s.holder, Token: s.token, Remaining: s.expires - now}
	}
	s.expires = max(s.expires, now+ttl)
	return lease.Grant{Resource: resource, Holder: h, Token: s.token, TTL: ttl}, nil
}

func (s *careless) Renew(_ context.Context, resource string, h lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clk.Now()
	if token != s.token || now >= s.expires {
		return lease.Grant{}, lease.ErrNotHeld
	}
	s.expires = max(s.expires, now+ttl)
	return lease.Grant{Resource: resource, Holder: h, Token: token, TTL: ttl}, nil
}

func (s *careless) Release(context.Context, string, lease.Holder, lease.Token) error {
	return lease.ErrNotHeld
}

func (s *careless) Get(context.Context, string) (lease.Observation, error) {
	return lease.Observation{}, nil
}

// What the store does not do is left out of the scripts.
var options = kit.Options{Terse: true, NoGet: true, Volatile: true}

func ExampleRun() {
	steps := script.Parse(`
		acquire a 10s
		advance 9s
		renew b of a 10s    # b knows a's token, from a log perhaps
	`)
	r := script.Run(open, options, steps)
	fmt.Println(r.Breach.Rule)
	for _, line := range script.Story(r) {
		fmt.Println(line)
	}
	// Output:
	// renew-only-by-the-holder
	// 0s  a acquires for 10s                    granted: token 1 for 10s
	// 9s  b renews under token 1 (a's) for 10s  granted: token 1 for 10s  ◄
	//     expected: refused as lost: a holds it under token 1 for another 1s, and this is b's request under token 1
}

func ExampleParseStep() {
	s, err := script.ParseStep("renew b of last+1 1.5s on q")
	fmt.Println(s.Who, s.Token, s.TTL, err)
	_, err = script.ParseStep("renew d 1s")
	fmt.Println(err)
	// Output:
	// b last+1 1.5s <nil>
	// "d": is nobody that there is: a, b or c, their later incarnations a.2 to a.255, or nobody
}

func ExampleParseText() {
	_, err := script.ParseText("acquire a 10s\nadvance ten seconds")
	fmt.Println(err)
	// Output: line 2: "ten": is not a duration such as 10s or 9.999s
}

func ExampleRunRandom() {
	var reached script.Coverage
	for seed := range uint64(10) {
		// lease.Memory is right, and forgets all with its process.
		r := script.RunRandom(func(e kit.Env) lease.Store {
			m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{})
			if err != nil {
				e.Fatal(err)
			}
			return m
		}, kit.Options{Volatile: true}, rand.NewPCG(seed, 0), 100)
		if r.Breach != nil {
			log.Fatal(r.Breach.Want)
		}
		reached.Add(r)
	}
	fmt.Println(reached.Steps, "steps, missed:", reached.Missed(kit.Options{Volatile: true}))
	// Output: 1000 steps, missed: []
}

func ExampleMinimize() {
	steps := script.Parse(`
		acquire c 3s
		advance 3s
		acquire b.2 20s
		acquire a 10s
		advance 1.5s
		renew a.3 of b.2 700ms
	`)
	r := script.Run(open, options, steps)
	for _, s := range script.Minimize(open, options, steps, r.Breach.Rule) {
		fmt.Println(s)
	}
	// Output:
	// acquire a 10s
	// renew b of last 10s
}

func ExampleExplore() {
	x := script.Explore(context.Background(), open, options, script.ExploreOptions{Depth: 4})
	fmt.Println(x.Failure.Breach.Rule)
	for _, l := range x.Failure.Lines {
		fmt.Println(l.Step)
	}
	// Output:
	// renew-only-by-the-holder
	// acquire a 1.5s
	// renew b of last 1.5s
}

func ExampleFile() {
	r := script.Run(open, options, script.Parse("acquire a 10s\nrenew b of a 10s"))
	f := script.File(r, r.Breach.Rule.String(), "TestMine", options)
	back, err := script.Read(bytes.NewReader(f.Data), f.Name)
	if err != nil {
		log.Fatal(err)
	}
	again := script.Run(open, back.Options, back.Steps)
	fmt.Println(back.Name == again.Breach.Rule.String())
	fmt.Printf("%s", f.Data)
	// Output:
	// true
	// {
	//   "version": 1,
	//   "kind": "store-script",
	//   "name": "renew-only-by-the-holder",
	//   "shows": "expected: refused as lost: a holds it under token 1 for another 10s, and this is b's request under token 1",
	//   "test": "TestMine",
	//   "options": {
	//     "volatile": true,
	//     "terse": true,
	//     "noGet": true
	//   },
	//   "steps": [
	//     "acquire a 10s",
	//     "renew b of a 10s"
	//   ],
	//   "answers": [
	//     "granted: token 1 for 10s",
	//     "granted: token 1 for 10s"
	//   ]
	// }
}
