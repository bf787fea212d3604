package leasesql

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// bootIDFile is where Linux says which boot this is: see random(4).
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID names this boot of the machine, whose clock is [clock.Boot]. It fails
// where there is none to be had, which is everywhere but on Linux: set
// [Options].Clock and Boot there.
func BootID() (string, error) {
	b, err := os.ReadFile(bootIDFile)
	if err != nil {
		return "", fmt.Errorf("which boot of the machine this is cannot be known: %w; set Clock and Boot", err)
	}
	id := strings.TrimSpace(string(b))
	if id == "" {
		return "", errors.New(bootIDFile + " is empty; set Clock and Boot")
	}
	return id, nil
}
