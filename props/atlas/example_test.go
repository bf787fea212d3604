package atlas_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"fencepost/props/atlas"
	"fencepost/props/explore"
)

// A small world is explored and drawn.
func ExampleHTML() {
	o := explore.Default()
	o.Clients, o.Messages = 1, 1
	report, err := explore.Run(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return
	}
	var page bytes.Buffer
	if err := atlas.HTML(&page, atlas.Survey{What: "the built-in implementation", Options: o, Report: report, Took: time.Second}); err != nil {
		fmt.Println(err)
		return
	}
	_, title, _ := strings.Cut(page.String(), "<title>")
	title, _, _ = strings.Cut(title, "</title>")
	fmt.Println(title)
	// Output: fencepost explore: holds
}
