//go:build unix

package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Tool builds command, a package of the Go module in the directory module, and
// gives the path of its binary, which Go keeps in its cache. It is built by that
// module's go.mod alone, so that it is once, whatever workspace the test is in:
// what a server needs may be much, and is no dependency of its clients.
func Tool(t testing.TB, module, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-n", command)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s cannot be built: %v\n%s", command, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// Healthy is the [Spec.Ready] of a server that answers a GET of url with 200 OK.
// Where its certificate is its own, ca is the file that has it; else "".
func Healthy(url, ca string) func(context.Context) error {
	return func(ctx context.Context) error {
		transport := &http.Transport{TLSClientConfig: &tls.Config{}}
		defer transport.CloseIdleConnections()
		if ca != "" {
			pem, err := os.ReadFile(ca)
			if err != nil {
				return err
			}
			transport.TLSClientConfig.RootCAs = x509.NewCertPool()
			transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, resp.Status)
		}
		return nil
	}
}
