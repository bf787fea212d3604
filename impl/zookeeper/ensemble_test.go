package zookeeper_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper/internal/session"
)

// A follower tells the leader only now and then which sessions it has heard of,
// and one that dies never does. What was renewed through it must be held for the
// whole TTL all the same; beside it a session that is renewed by a write on a
// connection that stays, as client libraries do, is not.
func TestARenewalOutlivesTheServerThatTookIt(t *testing.T) {
	const ttl, renewAfter = 4 * time.Second, 3 * time.Second
	servers := ensemble(t, time.Second)
	follower, leader := servers[0], servers[2]
	other, conn := leader.open(t), leader.dial(t)
	ctx := t.Context()
	dialer := session.Dialer{Servers: []string{follower.address}, Dial: new(net.Dialer).DialContext, Patience: 5 * time.Second}
	for i := range attempts {
		resource, path := fmt.Sprintf("lease-%d", i), fmt.Sprintf("/naive-%d", i)
		through := follower.open(t)
		granted := time.Now()
		g, err := through.Acquire(ctx, resource, a, ttl)
		if err != nil {
			t.Fatal(err)
		}
		naive, err := dialer.Open(ctx, ttl)
		if err != nil {
			t.Fatal(err)
		}
		defer naive.Close()
		if _, err := naive.Multi(ctx, &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(renewAfter)
		renewed := time.Now()
		_, err = through.Renew(ctx, resource, a, g.Token, ttl)
		if err == nil {
			_, err = naive.Multi(ctx, &zk.CheckVersionRequest{Path: path})
		}
		if time.Since(granted) > ttl {
			t.Logf("the machine was too slow to renew in time: %v", err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		follower.Kill()
		early := false
		for taken := false; !taken; time.Sleep(20 * time.Millisecond) {
			at := time.Since(renewed)
			there, _, err := conn.Exists(path)
			early = early || err == nil && !there && at < ttl
			_, err = other.Acquire(ctx, resource, b, ttl)
			switch taken = err == nil; {
			case taken && at < ttl:
				t.Errorf("granted %v after it was renewed for %v", at, ttl)
			case !taken && at > ttl+10*time.Second:
				t.Fatalf("still held %v after it was renewed for %v: %v", at, ttl, err)
			case !taken && lease.Refusal(err) != lease.CodeHeld:
				t.Fatal(err)
			}
		}
		if early {
			return
		}
		t.Log("the follower told the leader of the naive session before it died")
		if err := follower.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("a session that is renewed on a lasting connection never ended early in %d attempts: this test shows nothing", attempts)
}
