package clock_test

import (
	"fmt"
	"time"

	"fencepost/impl/clock"
)

// Whoever has a deadline waits for a timer, and asks the clock whether it has passed.
func Example() {
	lead := func(c clock.Clock, deadline time.Duration, stop <-chan struct{}) string {
		timer := c.Timer(deadline)
		defer timer.Stop()
		select {
		case <-timer.C():
			return fmt.Sprintf("term over at %v", c.Now())
		case <-stop:
			return "stopped"
		}
	}

	c := clock.NewManual(0) // in production: clock.Boot()
	result := make(chan string)
	go func() { result <- lead(c, 3*time.Second, nil) }()
	c.Advance(3 * time.Second)
	fmt.Println(<-result)
	// Output: term over at 3s
}

func ExampleNewManual() {
	c := clock.NewManual(10 * time.Second)
	timer := c.Timer(12 * time.Second)
	defer timer.Stop()

	c.Advance(2*time.Second - 1)
	fmt.Println(c.Now(), len(timer.C()))
	c.Advance(1)
	fmt.Println(c.Now(), len(timer.C()))
	// Output:
	// 11.999999999s 0
	// 12s 1
}

func ExampleManual_Set() {
	var c clock.Manual
	c.Set(time.Minute)
	fmt.Println(c.Now())
	// Output: 1m0s
}

// A client whose clock is 20% slow still believes in its term when the store's clock,
// which is the true one here, is past the end of it.
func ExampleNewDrifting() {
	store := clock.NewManual(0)
	client := clock.NewDrifting(store, 800_000, 42*time.Second)
	sent := client.Now()
	timer := client.Timer(sent + 9*time.Second)
	defer timer.Stop()

	store.Advance(10 * time.Second)
	fmt.Println("store", store.Now(), "client", client.Now()-sent, "fired", len(timer.C()))
	store.Advance(1250 * time.Millisecond)
	fmt.Println("store", store.Now(), "client", client.Now()-sent, "fired", len(timer.C()))
	// Output:
	// store 10s client 8s fired 0
	// store 11.25s client 9s fired 1
}

// A clock that stands still for a while is what a frozen virtual machine has.
func ExampleDrifting_SetRate() {
	base := clock.NewManual(0)
	c := clock.NewDrifting(base, clock.True, 0)
	timer := c.Timer(2 * time.Second)
	defer timer.Stop()

	base.Advance(time.Second)
	c.SetRate(0)
	base.Advance(time.Hour)
	fmt.Println(c.Now(), len(timer.C()))
	c.SetRate(clock.True)
	base.Advance(time.Second)
	fmt.Println(c.Now(), len(timer.C()))
	// Output:
	// 1s 0
	// 2s 1
}

func ExampleBoot() {
	c := clock.Boot()
	deadline := c.Now() + 100*time.Microsecond
	timer := c.Timer(deadline)
	defer timer.Stop()

	<-timer.C()
	fmt.Println("reached:", c.Now() >= deadline)
	// Output: reached: true
}

func ExampleMonotonic() {
	c := clock.Monotonic()
	timer := c.Timer(c.Now() + time.Hour)
	defer timer.Stop()

	timer.Reset(c.Now()) // fires at once
	<-timer.C()
	fmt.Println("fired")
	// Output: fired
}
