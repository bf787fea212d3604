// Package evidence draws what a check of a history found: one page for the
// browser that stands alone, and the same picture as SVG for a slide. Time
// flows to the right; below each lease, lock or storage lie its tenures, the
// beliefs of its holders, the operations and the tokens that landed, with what
// is violated in view and the order that was found drawn over the operations.
//
// It must not know how histories are read or judged: it imports nothing of
// ours, draws what a [Page] says, and says nothing that is not in it. Its
// strings may come from anybody, and do no harm.
//
// Start at [Page] for what can be said, [WriteHTML] and [WriteSVG] for the two
// forms of it.
package evidence
