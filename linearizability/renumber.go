package linearizability

import "fmt"

// firstFresh is the first process number that is given to a process which goes
// on after an info.
const firstFresh = 1_000_000

// renumber gives a process that calls again after an operation of unknown
// outcome a fresh number, which makes it another process: the old one's
// operation may then take effect at any later instant, as it must. Recorders of
// threads that live on write such files. A file whose meta record promises the
// rules of a history is held to them, unless its meta says reuse.
type renumber struct {
	strict bool
	alias  map[int64]int64 // from the file's number to the one that stands for it now
	issued map[int64]bool
	last   int64 // number issued
	calls  int   // that were given a fresh number
	line   int   // of the first of them
	first  int64 // its process
}

// apply renumbers e, which comes next after what v has seen.
func (r *renumber) apply(e *Event, v *validator) {
	if r.strict || e.Process == NoProcess {
		return
	}
	p := e.Process
	if a, ok := r.alias[p]; ok {
		e.Process = a
	} else if r.issued[p] { // the file has this number of its own
		e.Process = r.issue(p, v)
	}
	if c := v.process[e.Process]; c != nil && c.dead && e.Type == Invoke {
		if r.calls++; r.calls == 1 {
			r.line, r.first = e.Line, p
		}
		e.Process = r.issue(p, v)
	}
}

// issue finds a number that no process has had.
func (r *renumber) issue(p int64, v *validator) int64 {
	if r.alias == nil {
		r.alias, r.issued, r.last = make(map[int64]int64), make(map[int64]bool), firstFresh-1
	}
	for r.last++; v.process[r.last] != nil; {
		r.last++
	}
	r.alias[p], r.issued[r.last] = r.last, true
	return r.last
}

func (r *renumber) notes() []string {
	if r.calls == 0 {
		return nil
	}
	return []string{fmt.Sprintf("process %d in line %d goes on after an operation that ended as info: calls like that, %d in all, count as of other processes, numbered from %d",
		r.first, r.line, r.calls, firstFresh)}
}
