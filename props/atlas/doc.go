// Package atlas draws what an exploration found for a person to look at: how
// many states lie at each depth, which actions led through them, when each
// thing that must happen sometimes first did, how clients stood, and the
// counterexample if there is one, as one page that needs nothing else.
//
// It must not know how to explore, nor judge anything: package explore has
// counted, and says in words what may be claimed.
//
// Start at [HTML] and its example; map.go places the charts that share the axis
// of depths, page.html says how all of it looks.
package atlas
