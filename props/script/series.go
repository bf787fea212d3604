package script

import (
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// seriesMost is how many scripts one store of a series plays. A store keeps
// every lease for ever, and one that writes all of them down at each call gets
// slow.
const seriesMost = 128

// Series plays scripts, most of them on a store that has played others before,
// each on leases of its own: opening a store often takes as long as a hundred
// calls. Its zero value is of no use; see [NewSeries]. It must be closed.
type Series struct {
	open   Open
	o      kit.Options
	lab    *kit.Lab[lease.Store] // nil: the next script needs a fresh store
	played int                   // scripts on it
	most   int                   // that one store plays
}

// NewSeries opens nothing yet.
func NewSeries(open Open, o kit.Options) *Series { return &Series{open: open, o: o, most: seriesMost} }

// Close ends the store.
func (s *Series) Close() {
	if lab := s.lab; lab != nil {
		s.lab, s.played = nil, 0
		lab.Close()
	}
}

// Run is [Run] on the store of the series. After a broken rule the next script
// has a fresh store: what this one does then says nothing.
func (s *Series) Run(steps []Step) Result {
	p := s.join(1)
	p.lines = make([]Line, 0, len(steps))
	for _, step := range steps {
		if !p.play(step) {
			break
		}
	}
	return s.told(p)
}

// RunRandom is [RunRandom] on the store of the series, and goes on as Run does.
func (s *Series) RunRandom(src Source, n int) Result {
	p := s.join(1)
	p.random(src, n)
	if p.breach == nil {
		return Result{Lines: p.lines, Others: s.played - 1}
	}
	return s.told(p)
}

// told is what came of p, in words.
func (s *Series) told(p *player) Result {
	r := p.result()
	r.Others = s.played - 1
	if p.breach != nil {
		s.Close()
	}
	return r
}

// join is a player with leases that nobody has asked for, on a store that has
// room for n of them.
func (s *Series) join(n int) *player {
	if s.played+n > s.most {
		s.Close()
	}
	if s.lab == nil {
		s.lab = newLab(s.open, s.o)
	}
	p := playerOn(s.lab, s.o, s.played)
	s.played++
	return p
}
