package zookeeper_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/zookeeper"
	"fencepost/props/daemon"
)

// tick is the unit in which the server under test counts sessions down: a
// session lasts two of them at least, and up to one more than it should.
// It is that long because a call on a busy machine takes some hundred
// milliseconds, which are to be little of any session.
const tick = 200 * time.Millisecond

type server struct {
	*daemon.Daemon
	address string
}

// One server is enough for all that is not about an ensemble: each test has
// resources and paths of its own. Those which tamper with it come last.
func TestOnOneServer(t *testing.T) {
	s := serve(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"Examples", testExamples},
		{"TheTokenIsTheCzxidOfTheTenure", testTheTokenIsTheCzxidOfTheTenure},
		{"ADeletionFreesTheLeaseAndKeepsTheCount", testADeletionFreesTheLeaseAndKeepsTheCount},
		{"ALapseIsToldFromALoss", testALapseIsToldFromALoss},
		{"ARenewalWithAnotherTTLNeverShortens", testARenewalWithAnotherTTLNeverShortens},
		{"ATTLThatNoSessionCanLastIsInvalid", testATTLThatNoSessionCanLastIsInvalid},
		{"AnyTextNamesAResource", testAnyTextNamesAResource},
		{"ClosingTheStoreEndsNoTenure", testClosingTheStoreEndsNoTenure},
		{"AnAttemptWhoseSessionEndedBeforeItIsMadeAgain", testAnAttemptWhoseSessionEndedBeforeItIsMadeAgain},
		{"AGrantWhoseSessionEndedUntoldIsUnknown", testAGrantWhoseSessionEndedUntoldIsUnknown},
		{"ARenewalWhoseSessionEndedUnderItIsRefused", testARenewalWhoseSessionEndedUnderItIsRefused},
		{"StorageRefusesWhatIsLowerThanTheHighestToken", testStorageRefusesWhatIsLowerThanTheHighestToken},
		{"ChecksStopTheLeadersOwnMulti", testChecksStopTheLeadersOwnMulti},
		{"TheNodesAreForWhoHasTheCredential", testTheNodesAreForWhoHasTheCredential},
		{"ACredentialThatWasCutOffIsShownAgain", testACredentialThatWasCutOffIsShownAgain},
		{"EachConnectionIsMadeByDial", testEachConnectionIsMadeByDial},
		{"LiveChecksCatchWrongStores", testLiveChecksCatchWrongStores},
		{"CallsAndCloseEndWhileTheServerHangs", testCallsAndCloseEndWhileTheServerHangs},
		{"LiveStorage", testLiveStorage},
		{"Live", testLive},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, s) }) {
			if err := s.answers(t.Context()); err != nil {
				t.Fatalf("the server answers no more: %v", err)
			}
		}
	}
}

// serve starts a ZooKeeper server of the test's own.
func serve(t testing.TB) *server {
	t.Helper()
	s := prepare(t, "org.apache.zookeeper.server.ZooKeeperServerMain", 0, fmt.Sprintf("tickTime=%d\n", tick.Milliseconds()))
	if err := s.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// ensemble starts three servers that agree, and gives the leader last.
func ensemble(t testing.TB, tick time.Duration) (servers []*server) {
	t.Helper()
	config := fmt.Sprintf("tickTime=%d\ninitLimit=20\nsyncLimit=10\n4lw.commands.whitelist=srvr\n", tick.Milliseconds())
	for id := range 3 {
		config += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", id+1, daemon.Port(t), daemon.Port(t))
	}
	for id := range 3 {
		servers = append(servers, prepare(t, "org.apache.zookeeper.server.quorum.QuorumPeerMain", id+1, config))
	}
	for _, s := range servers {
		if err := s.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	leads := func(s *server) bool {
		stats, ok := zk.FLWSrvr([]string{s.address}, 5*time.Second)
		return ok && stats[0].Mode == zk.ModeLeader
	}
	slices.SortStableFunc(servers, func(a, b *server) int {
		switch {
		case leads(a):
			return 1
		case leads(b):
			return -1
		}
		return 0
	})
	return servers
}

// prepare starts a server, and does not wait until it is ready.
func prepare(t testing.TB, main string, id int, more string) *server {
	t.Helper()
	java := daemon.Find(t, "apt-get install default-jre-headless", "java")
	jar := daemon.Find(t, "apt-get install zookeeper", "/usr/share/java/zookeeper.jar")
	const user = "zookeeper"
	dir, port := daemon.Dir(t, user), daemon.Port(t)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("clientPortAddress=127.0.0.1\nclientPort=%d\ndataDir=%s\nmaxSessionTimeout=120000\nmaxClientCnxns=0\nadmin.enableServer=false\n", port, dir)
	for name, text := range map[string]string{config: text + more, filepath.Join(dir, "myid"): strconv.Itoa(id)} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{address: fmt.Sprintf("127.0.0.1:%d", port)}
	s.Daemon = daemon.Launch(t, daemon.Spec{
		Command: []string{java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-cp", jar + ":" + filepath.Join(filepath.Dir(jar), "slf4j-nop.jar"), main, config},
		Dir:   dir,
		User:  user,
		Ready: s.answers,
	})
	return s
}

// answers returns nil once the server does.
func (s *server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}})
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Get(ctx, "ready")
	return err
}

// open makes a store on the server that ends with the test.
func (s *server) open(t testing.TB) *zookeeper.Store {
	t.Helper()
	store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// dial makes a plain connection to the server that ends with the test.
func (s *server) dial(t testing.TB) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.address}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
