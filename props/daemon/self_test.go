//go:build unix

package daemon_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost/props/daemon"
)

// That the test binary serves when it is run again is what the other tests stand
// on; here the server cannot have what it was told to.
func TestAServerOfItsOwnThatFailsSaysWhy(t *testing.T) {
	for _, c := range []struct {
		config any
		want   string
	}{
		{1 << 20, "invalid port"},
		{"text", "cannot unmarshal string"},
	} {
		spec, err := daemon.Self(c.config)
		if err != nil {
			t.Fatal(err)
		}
		spec.Ready = func(context.Context) error { return errors.New("not yet") }
		d := &failing{TB: t}
		func() {
			defer func() { recover() }()
			daemon.Start(d, spec)
		}()
		if !strings.Contains(d.said, "exit status 1") || !strings.Contains(d.said, c.want) {
			t.Errorf("with %v it says %q; want %q in it", c.config, d.said, c.want)
		}
	}
	if _, err := daemon.Self(func() {}); err == nil {
		t.Error("a function is a configuration")
	}
}

func TestAToolThatCannotBeBuiltEndsTheTest(t *testing.T) {
	d := &failing{TB: t}
	func() {
		defer func() { recover() }()
		daemon.Tool(d, t.TempDir(), "fencepost/no/such/command")
	}()
	if !strings.HasPrefix(d.said, "fatal: fencepost/no/such/command cannot be built") {
		t.Errorf("it says %q", d.said)
	}
}

// Only 200 OK under a certificate that is known is healthy.
func TestHealthy(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	plain, tls := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer tls.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url, ca string
		want    bool
	}{
		{plain.URL + "/readyz", "", true},
		{tls.URL + "/readyz", ca, true},
		{plain.URL, "", false},
		{tls.URL, ca, false},
		{tls.URL + "/readyz", "", false},
		{tls.URL + "/readyz", ca + ".missing", false},
	} {
		if err := daemon.Healthy(c.url, c.ca)(t.Context()); c.want != (err == nil) {
			t.Errorf("%s with certificate %q: %v", c.url, c.ca, err)
		}
	}
	plain.Close()
	if daemon.Healthy(plain.URL+"/readyz", "")(t.Context()) == nil {
		t.Error("one that is gone is healthy")
	}
}
