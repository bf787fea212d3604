package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths, in characters, of what is shown of a string.
const (
	titleLength = 120
	nameLength  = 60
	labelLength = 80
	textLength  = 2000
)

// text makes a string from anywhere fit to show: at most so many characters,
// none that XML forbids and none that reorders what stands beside it. White
// space becomes single spaces.
func text(s string, most int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if n++; n > most {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if r == utf8.RuneError || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == 0xfffe || r == 0xffff {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

func headline(s string) string { return text(s, titleLength) }
func name(s string) string     { return text(s, nameLength) }
func label(s string) string    { return text(s, labelLength) }
func prose(s string) string    { return text(s, textLength) }

// textWidth is about how wide a text is, rather too wide than too narrow: SVG
// cannot say, and the fonts of the reader are not known.
func textWidth(s string, size float64) float64 {
	var em float64
	for _, r := range s {
		switch {
		case r >= 0x1100:
			em += 1.05
		case strings.ContainsRune("iljtfrI.,:;'|!()[] ", r):
			em += .38
		case strings.ContainsRune("mwMW@%", r):
			em += .95
		case unicode.IsUpper(r):
			em += .7
		default:
			em += .6
		}
	}
	return em * size
}

// shorten cuts a text to a width.
func shorten(s string, size, width float64) string {
	if textWidth(s, size) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 1 && textWidth(string(runes)+"…", size) > width {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + "…"
}

// fitting is the first of the texts that fits.
func fitting(room float64, all ...string) string {
	for _, s := range all {
		if s != "" && textWidth(s, fontSize) <= room {
			return s
		}
	}
	return ""
}

// firstWord is what remains of a label where there is little room.
func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return strings.TrimRight(word, ":,;")
}

// brief is the name of a row where there is little room.
func brief(name string) string {
	word, number, ok := strings.Cut(name, " ")
	if _, err := strconv.Atoi(number); ok && err == nil && word != "" {
		_, first := utf8.DecodeRuneInString(word)
		return word[:first] + number
	}
	if name == "highest token" {
		return "token"
	}
	return name
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// wrap breaks a text into at most so many lines.
func wrap(s string, size, width float64, most int) (lines []string) {
	words := strings.Fields(s)
	for len(words) > 0 {
		n := 1
		for n < len(words) && textWidth(strings.Join(words[:n+1], " "), size) <= width {
			n++
		}
		if len(lines) == most-1 {
			n = len(words)
		}
		lines = append(lines, shorten(strings.Join(words[:n], " "), size, width))
		words = words[n:]
	}
	return lines
}

// distinct are the names that occur, in order.
func distinct[T any](all []T, name func(T) string) (names []string) {
	for i := range all {
		if n := name(all[i]); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// natural puts names that differ only in a number in order of it.
func natural(names []string) {
	split := func(s string) (string, int, bool) {
		head := strings.TrimRight(s, "0123456789")
		n, err := strconv.Atoi(s[len(head):])
		return head, n, err == nil
	}
	for _, s := range names {
		head, _, ok := split(s)
		if first, _, _ := split(names[0]); !ok || head != first {
			return
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		_, m, _ := split(a)
		_, n, _ := split(b)
		return cmp.Compare(m, n)
	})
}

// join puts what is not empty behind each other.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// lines says in which lines of the file something is.
func lines(all []int) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("line")
	if len(all) > 1 {
		b.WriteByte('s')
	}
	for i, n := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", n)
	}
	return b.String()
}

func holder(who string, t uint64) string {
	if t == 0 {
		return name(who)
	}
	return name(who) + " · token " + strconv.FormatUint(t, 10)
}

func token(t uint64) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(t, 10)
}

// said is what an operation is called.
func (op *Operation) said() string {
	if s := label(op.Label); s != "" {
		return s
	}
	return "operation " + strconv.Itoa(op.ID)
}
