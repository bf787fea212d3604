package model

import (
	"encoding/binary"
	"sync"
)

// frontier is the states of one level, packed into chunks: end to end if they
// have one width, else each after its length.
type frontier struct {
	chunks [][]byte
	states uint64
}

// chunkPool hands out empty chunks and takes back expanded ones, so that the
// level being made grows into the memory of the level being expanded.
type chunkPool struct {
	size   int
	memory *meter
	mu     sync.Mutex
	free   [][]byte
}

// get gives an empty chunk with room for need bytes at least.
func (p *chunkPool) get(need int) []byte {
	if need > p.size {
		p.memory.add(need)
		return make([]byte, 0, need)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c
	}
	p.memory.add(p.size)
	return make([]byte, 0, p.size)
}

func (p *chunkPool) put(c []byte) {
	if cap(c) > p.size {
		p.memory.add(-cap(c)) // it was made for one long state
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, c[:0])
}

// frontierWriter packs states. Each belongs to one goroutine.
type frontierWriter struct {
	pool  *chunkPool
	width int
	full  frontier
	open  []byte
}

func (w *frontierWriter) push(state []byte) {
	w.full.states++
	if w.width == 0 {
		w.reserve(binary.MaxVarintLen64 + len(state))
		w.open = binary.AppendUvarint(w.open, uint64(len(state)))
	} else {
		w.reserve(w.width)
	}
	w.open = append(w.open, state...)
}

// reserve makes room for n bytes in the open chunk: a state never lies across
// two.
func (w *frontierWriter) reserve(n int) {
	if cap(w.open)-len(w.open) >= n {
		return
	}
	if len(w.open) > 0 {
		w.full.chunks = append(w.full.chunks, w.open)
	} else if cap(w.open) > 0 {
		w.pool.put(w.open)
	}
	w.open = w.pool.get(n)
}

// take hands over what was written and starts anew.
func (w *frontierWriter) take() frontier {
	f := w.full
	if len(w.open) > 0 {
		f.chunks = append(f.chunks, w.open)
		w.open = nil
	}
	w.full = frontier{}
	return f
}

// unpack splits the first state off a chunk that is not empty.
func unpack(chunk []byte, width int) (state, rest []byte) {
	if width == 0 {
		n, size := binary.Uvarint(chunk)
		chunk, width = chunk[size:], int(n)
	}
	return chunk[:width:width], chunk[width:]
}
