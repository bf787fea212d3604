// Package props is what tests call: the conformance kit, which checks somebody's
// own lease store, fenced storage or client in one call, and the properties of
// the simulated implementation, drawn by rapid. A failure becomes a short file
// that shows the same failure to the test, to the command and to a reader.
//
// Importing it registers flags, rapid's and its own, so no command may import
// it; and it must not know how anything is drawn, run or judged: packages
// storetest, storagetest and electortest, sim and judge do that.
//
// Start at [TestStore], [TestStorage] or [TestElector] for code of your own, and
// at [Check] for a property.
//
// # What a failure leaves behind
//
// A counterexample is a file below testdata/fencepost/NAME in the directory of
// the test called NAME, and beside it, if it is longer than a screen, its
// timeline as text. From then on the subtest "kept" replays it before anything
// else: it is red until the code is mended, and a regression test after that.
// Commit it, or delete it. What happened once, among real goroutines, is a
// history (.jsonl), for fencepost check; it cannot be replayed.
//
// # Quick, and at night
//
// Without flags a check makes a fixed number of calls, from a fixed seed: the
// same code gets the same answer, but for what the scheduler does to real
// goroutines. -fencepost.long, or FENCEPOST_LONG=1, makes a hundred times as
// many, from a new seed, which a failure prints; -fencepost.seed, or
// FENCEPOST_SEED, repeats one. The flags fail in packages that do not import
// this one, the variables work everywhere.
//
// # In GitHub Actions
//
//   - run: go test -race ./...
//   - uses: actions/upload-artifact@v4
//     if: failure()
//     with:
//     name: fencepost
//     path: '**/testdata/fencepost'
package props
