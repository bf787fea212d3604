//go:build unix

package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// selfEnv has the configuration of a test binary that is to serve.
const selfEnv = "FENCEPOST_TEST_SERVES"

// Self is the test binary, run again: not for its tests, but to serve with
// config, as its TestMain says by [Main]. So a server that is a Go package can be
// killed with SIGKILL, too. Config goes there as JSON.
func Self(config any) (Spec, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return Spec{}, fmt.Errorf("daemon: the configuration of the server: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return Spec{}, fmt.Errorf("daemon: where the test binary is: %w", err)
	}
	return Spec{Command: []string{exe}, Env: []string{selfEnv + "=" + string(text)}}, nil
}

// Main is the TestMain of a package whose tests run it again by [Self]. There
// serve is called, and the process ends with it: with status 1 and the error on
// standard error, if there is one. Otherwise the tests are run.
func Main[Config any](m *testing.M, serve func(Config) error) {
	text, ok := os.LookupEnv(selfEnv)
	if !ok {
		os.Exit(m.Run())
	}
	os.Unsetenv(selfEnv) // what it starts is not meant
	var config Config
	err := json.Unmarshal([]byte(text), &config)
	if err == nil {
		err = serve(config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
