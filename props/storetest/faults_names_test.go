package storetest

import (
	"maps"
	"slices"
	"strings"

	"fencepost/impl/lease"
)

// nameFaults take two names for one, each in a way that was seen somewhere.
func nameFaults() (fs []fault) {
	resources := map[string]func(string) string{
		"in-another-case":               strings.ToLower,
		"with-a-space-at-the-end":       func(s string) string { return strings.TrimRight(s, " ") },
		"with-a-space-at-the-beginning": strings.TrimSpace,
		"with-a-newline-at-the-end":     strings.TrimSpace,
		"with-quotes":                   func(s string) string { return strings.ReplaceAll(s, "''", "'") },
		"with-double-quotes":            func(s string) string { return strings.ReplaceAll(s, `\"`, `"`) },
		"with-a-slash":                  func(s string) string { return strings.Split(s, "/")[0] },
		"with-a-slash-at-the-end":       func(s string) string { return strings.TrimRight(s, "/") },
		"that-is-a-path":                func(s string) string { return strings.TrimPrefix(s, "../") },
		"that-another-begins-with":      func(s string) string { return s[:min(len(s), 7)] },
		"with-a-percent-sign":           func(s string) string { return strings.ReplaceAll(s, "%2F", "/") },
		"that-is-a-pattern":             func(s string) string { return strings.ReplaceAll(s, "%", "x") },
		"that-is-a-format":              func(s string) string { return strings.ReplaceAll(s, "%s", "%d") },
		"with-a-colon":                  func(s string) string { return strings.Split(s, ":")[0] },
		"with-a-nul":                    func(s string) string { return strings.Split(s, "\x00")[0] },
		"that-a-nul-ends":               func(s string) string { return strings.Split(s, "\x00")[0] },
		"of-ten-kilobytes":              func(s string) string { return s[:min(len(s), 4096)] },
		"of-300-bytes":                  func(s string) string { return s[:min(len(s), 255)] },
		"in-another-unicode-form":       func(s string) string { return strings.ReplaceAll(s, "e\u0301", "\u00e9") },
		"that-is-not-utf-8":             func(s string) string { return strings.ToValidUTF8(s, "?") },
		"without-a-name": func(s string) string {
			if s == "" {
				return lock
			}
			return s
		},
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		fs = append(fs, fault{name: "resources: " + name, check: "malformed/resource-" + name, resource: resources[name]})
	}
	holders := map[string]func(h *lease.Holder){
		"with-a-large-sequence-number": func(h *lease.Holder) { h.Seq = uint64(float64(h.Seq)) },
		"with-digits-that-move": func(h *lease.Holder) {
			if h.Node == "a1" {
				*h = lease.Holder{Node: "a", Seq: 11, Nonce: h.Nonce}
			}
		},
		"in-another-case": func(h *lease.Holder) { h.Node = strings.ToLower(h.Node) },
		"without-a-node": func(h *lease.Holder) {
			if h.Node == "" {
				h.Seq = 1
			}
		},
		"with-a-hash-sign":        func(h *lease.Holder) { h.Node = strings.Split(h.Node, "#")[0] },
		"with-a-space-at-the-end": func(h *lease.Holder) { h.Node = strings.TrimSpace(h.Node) },
		"with-spaces":             func(h *lease.Holder) { h.Node = strings.Split(h.Node, " ")[0] },
		"with-quotes":             func(h *lease.Holder) { h.Node = strings.Split(h.Node, "'")[0] },
		"with-a-slash":            func(h *lease.Holder) { h.Node = strings.Split(h.Node, "/")[0] },
		"in-another-unicode-form": func(h *lease.Holder) { h.Node = strings.ReplaceAll(h.Node, "e\u0301", "\u00e9") },
		"with-a-nul":              func(h *lease.Holder) { h.Node = strings.Split(h.Node, "\x00")[0] },
		"of-ten-kilobytes":        func(h *lease.Holder) { h.Node = h.Node[:min(len(h.Node), 4096)] },
	}
	for _, name := range slices.Sorted(maps.Keys(holders)) {
		fs = append(fs, fault{name: "holders: " + name, check: "malformed/holder-" + name, holder: func(h lease.Holder) lease.Holder { holders[name](&h); return h }})
	}
	return fs
}
