// Package electortest checks somebody's own client of a lease: the candidate
// that campaigns, renews and steps down. It runs it in a testing/synctest
// bubble, where package time is fake, against a store whose calls hang, are
// slow, get lost, come twice and are refused, and whose clock drifts; and it
// looks on whether the client ever believes that it leads while it does not
// hold the lease.
//
// It must not know how a client is made: all it sees is what a [Candidate]
// shows, what the store is asked, and the work that is run. That belief
// implies the tenure is judged by the tenures that the fake store has given,
// never by a formula for the client's deadline.
//
// Start at [Checks] for how to use it, the stories in stories_belief.go and
// those beside it for what is asked of a client, world.go for how a story runs,
// judge.go for what breaks a rule.
//
// The rules are those of Gray and Cheriton, "Leases: An Efficient
// Fault-Tolerant Mechanism for Distributed File Cache Consistency" (SOSP
// 1989), with fencing tokens as in Kleppmann, "How to do distributed locking"
// (2016).
package electortest
