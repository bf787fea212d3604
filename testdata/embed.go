// Package testdata carries the scenario files inside whatever binary imports
// it, so that a command can list and run them wherever it was installed.
//
// It must not know what the files mean. Start at [Schedules], and read it with
// package scenario.
package testdata

import "embed"

// Schedules holds the named scenarios, each in its file schedules/NAME.json.
//
//go:embed schedules/*.json
var Schedules embed.FS
