package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"
)

// job is what a candidate has to know.
type job struct {
	Library, Resource, Name string
	Server                  server
	TTL                     time.Duration
}

// The lines by which parent and candidate talk. Those of a candidate carry its clock.
const (
	sayCampaign = "campaign"
	sayResign   = "resign"
	sayLead     = "lead"
	sayLost     = "lost"
)

// lead is what a candidate does while it leads: it returns once it is to resign, or
// after ended. Belief ends at the deadline in any case.
type lead func(ended <-chan struct{}, deadline func() time.Duration)

// stand is a candidate: it campaigns each time it is told to, until its input ends.
func stand(j job) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	campaign, err := libraries[j.Library](ctx, j)
	if err != nil {
		return err
	}
	told := map[string]chan struct{}{sayCampaign: make(chan struct{}, 1), sayResign: make(chan struct{}, 1)}
	go func() {
		defer cancel()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			told[in.Text()] <- struct{}{}
		}
	}()
	for {
		select {
		case <-told[sayCampaign]:
		case <-ctx.Done():
			return nil
		}
		err := campaign(ctx, func(ended <-chan struct{}, deadline func() time.Duration) {
			say(sayLead, boot.Now())
			select {
			case <-told[sayResign]:
			case <-ended:
			}
			say(sayLost, min(boot.Now(), deadline()))
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func say(what string, at time.Duration) { fmt.Println(what, int64(at)) }
