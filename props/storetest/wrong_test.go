package storetest

import (
	"fmt"
	"strings"

	"fencepost/props/kit"
)

// tell is a failure about as a user sees it.
func tell(f *kit.Failure) string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n%s", f.Rule, f.Says, f.What, strings.Join(f.Story, "\n"), f.Read)
}
