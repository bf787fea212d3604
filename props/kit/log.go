package kit

import (
	"io"
	"strings"
	"sync"
)

// Log keeps the last lines written to it.
type Log struct {
	mu    sync.Mutex
	lines []string
}

var _ io.Writer = (*Log)(nil)

const logLines = 20

// Write is that of a log handler, which writes whole lines.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimRight(string(p), "\n"))
	if n := len(l.lines); n > logLines {
		l.lines = append(l.lines[:0], l.lines[n-logLines:]...)
	}
	return len(p), nil
}

// String is the lines that are left.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
