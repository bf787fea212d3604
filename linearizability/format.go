package linearizability

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Format is one of the ways to write a history down. Its text is its name on a
// command line.
//
// All of them carry the fields that this package does not know. In JSON, a value
// that only EDN can say is the object {"#edn": "text"}, a keyword the string
// ":word", and an error that is one word a keyword. A fault is Jepsen's nemesis
// line; the few nemeses that invoke and return keep their type in a field. The
// meta record, {"meta": {...}} or {:meta {...}}, is the first; in formats that
// others read it is there only if it says more than DefaultMeta.
//
// The format ops has one operation a line, in the order of the calls, in columns
// parted by tabs and fields parted by spaces, so that grep and cut find their
// way:
//
//	# fencepost ops: call..return, process, f, outcome, fields of the call -> fields of the return
//	meta	version=1 drift=0.0002 early=0 late=nil eps=0 tokens="next" anchor="grant"
//	0@0..1@900	0	acquire	ok	key="shard-1" owner="a#1" ttl=2000000000 -> token=10
//	2@950..	1	acquire	info	key="shard-1" owner="b#1" ttl=2000000000
//	3@970	-	cut	fault	node="n1"
//
// An instant is index@time in nanoseconds, or an index alone where there are no
// times. Or it is @time alone, as another program may find easiest: then what
// happened at one instant overlaps, as nobody knows better, except within a
// process. An operation that did not return has no second instant, and is info.
// A field is its name, an equals sign and its value in EDN; a name that is no
// EDN keyword's, or has an equals sign, is in quotes, and so is such an f. The
// meta line may be missing, lines that begin with # are comments, and the first
// line of the example, from which the format is told, may end after "ops".
type Format uint8

// The formats. All are read and written; what one of them cannot say is a Loss
// when a history is written in it.
const (
	FormatUnknown   Format = iota
	FormatJSONLines        // jsonl: one JSON object a line; fencepost's own
	FormatJSONArray        // json: one JSON array of objects, as elle-cli reads
	FormatEDN              // edn: maps one after another (Jepsen)
	FormatEDNVector        // edn-vector: one vector of maps (Knossos)
	FormatEDNList          // edn-list: one list of maps (Knossos)
	FormatOps              // ops: one operation a line, with the instants of its call and return
	FormatLog              // log: lines of jepsen.util: process, type, f, value
	FormatKVLog            // kv-log: porcupine's log of a key-value store: maps of process, type, f, key, value
)

var formatNames = [...]string{"unknown", "jsonl", "json", "edn", "edn-vector", "edn-list", "ops", "log", "kv-log"}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// Formats returns all formats but the unknown one.
func Formats() []Format {
	fs := make([]Format, 0, len(formatNames)-1)
	for f := FormatJSONLines; int(f) < len(formatNames); f++ {
		fs = append(fs, f)
	}
	return fs
}

// ParseFormat is the inverse of Format.String. It refuses the unknown format.
func ParseFormat(name string) (Format, error) {
	if i := slices.Index(formatNames[1:], name); i >= 0 {
		return Format(i + 1), nil
	}
	return FormatUnknown, fmt.Errorf("%s is no format of a history: want one of %s", quote(name), strings.Join(formatNames[1:], ", "))
}

// ownFormat reports whether f is one that only fencepost writes: it promises
// that times do not step back unless its meta says so.
func (f Format) ownFormat() bool { return f == FormatJSONLines || f == FormatOps }

// Detect tells the format by the beginning of a file; a few hundred bytes do.
// Porcupine's key-value log is EDN, and detected as that.
func Detect(head []byte) Format {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(opsHeader)) {
		return FormatOps
	}
	text := bytes.TrimLeft(head, " \t\r\n,")
	if len(text) == 0 {
		return FormatUnknown
	}
	switch inner := bytes.TrimLeft(text[1:], " \t\r\n,"); text[0] {
	case '{':
		if len(inner) == 0 || inner[0] == '"' || inner[0] == '}' {
			return FormatJSONLines
		}
		return FormatEDN
	case '[':
		if len(inner) == 0 || inner[0] == ']' {
			return FormatJSONArray
		}
		if inner[0] == '{' {
			key := bytes.TrimLeft(inner[1:], " \t\r\n,")
			if len(key) == 0 || key[0] == '"' || key[0] == '}' {
				return FormatJSONArray
			}
		}
		return FormatEDNVector
	case '(':
		return FormatEDNList
	case ';', '#':
		return FormatEDN
	}
	line, _, _ := bytes.Cut(text, newline)
	if bytes.Contains(line, []byte(logMark)) {
		return FormatLog
	}
	return FormatUnknown
}
