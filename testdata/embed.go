// Package testdata carries the schedule files inside whatever binary imports
// it, so that a command can list and run them wherever it was installed.
//
// It must not know what the files mean. Start at [Schedules] and [Shortest],
// and read them with package scenario.
package testdata

import "embed"

// Schedules holds the named scenarios, each in its file schedules/NAME.json.
//
//go:embed schedules/*.json
var Schedules embed.FS

// Shortest holds for each planted bug a shortest counterexample in the worlds
// that are explored for it, in the file shortest/NAME.json. There is none for a
// bug that no explored world shows.
//
//go:embed shortest/*.json
var Shortest embed.FS
