package linearizability

import (
	"fmt"
	"io"
	"strings"
)

// logMark stands before the event in a line of Jepsen's log.
const logMark = "jepsen.util - "

// readLog reads lines such as
//
//	INFO  jepsen.util - 3	:invoke	:cas	[1 4]
//
// which have no times: order is all there is. Lines of other loggers are
// skipped.
func readLog(s *source, b *builder) error {
	var buf []byte
	for {
		line := s.line
		var err error
		buf, err = s.readLine(buf[:0])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return at(err, b.h.Name, line)
		}
		text := strings.TrimSpace(string(buf))
		if text == "" {
			continue
		}
		_, event, ok := strings.Cut(text, logMark)
		if !ok {
			if strings.Contains(text, " - ") {
				continue
			}
			return at(fmt.Errorf("want a line of a log, with %q before the event", strings.TrimSpace(logMark)), b.h.Name, line)
		}
		v, err := parseEDN("["+event+"]", 1)
		if err != nil {
			return at(err, b.h.Name, line)
		}
		if len(v.list) != 4 {
			return at(fmt.Errorf("want process, type, f and value, not %d values", len(v.list)), b.h.Name, line)
		}
		fields := make([]Field, 4)
		for i, name := range []string{"process", "type", "f", "value"} {
			fields[i] = Field{name, v.list[i]}
		}
		if err := b.record(fields, line); err != nil {
			return err
		}
	}
}
