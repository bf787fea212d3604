package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"fencepost/linearizability"
)

// historyExts are those of the files that are looked at in a directory.
var historyExts = []string{".jsonl", ".json", ".edn", ".log", ".txt", ".ops"}

// historyFiles expands the arguments of check, in their order, each file once:
// directories to the histories below them, globs to the files that they match.
// The number is of files in directories that are no histories. What matches
// nothing is an error: a check of nothing would pass.
func historyFiles(args []string) (files []string, skipped int, err error) {
	seen := make(map[string]bool)
	add := func(file string) {
		if name := filepath.Clean(file); !seen[name] {
			seen[name] = true
			files = append(files, file)
		}
	}
	for _, arg := range args {
		info, statErr := os.Stat(arg)
		switch {
		case arg == "-":
			add(arg)
		case statErr == nil && info.IsDir():
			before := len(files)
			err := walkFiles(arg, func(file string) error {
				if isHistory(file) {
					add(file)
				} else {
					skipped++
				}
				return nil
			})
			if err != nil {
				return nil, 0, err
			}
			if len(files) == before {
				return nil, 0, fmt.Errorf("%s: no history below this directory: want files with %s", arg, strings.Join(historyExts, ", "))
			}
		case statErr == nil || !strings.ContainsAny(arg, "*?["):
			add(arg) // reading it says what is wrong
		default:
			matches, err := glob(arg)
			if err != nil {
				return nil, 0, err
			}
			for _, file := range matches {
				add(file)
			}
		}
	}
	return files, skipped, nil
}

// several reports whether an argument may stand for several files.
func several(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && info.IsDir() || err != nil && strings.ContainsAny(arg, "*?[")
}

// walkFiles visits the files below a directory in lexical order.
func walkFiles(dir string, visit func(string) error) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return nil // a link to nowhere or to a directory, a socket
		}
		return visit(file)
	})
}

// glob lists the files that a pattern matches; ** stands for any number of
// directories, none included.
func glob(pattern string) ([]string, error) {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(pattern)), "/")
	fixed := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, "*?[") })
	root := strings.Join(parts[:fixed], "/")
	switch {
	case fixed == 0:
		root = "."
	case root == "":
		root = "/"
	}
	parts = parts[fixed:]
	for _, p := range parts {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%s: the pattern %q: %w", pattern, p, err)
		}
	}
	var files []string
	err := walkFiles(filepath.FromSlash(root), func(file string) error {
		rel, err := filepath.Rel(filepath.FromSlash(root), file)
		if err == nil && matchParts(parts, strings.Split(filepath.ToSlash(rel), "/")) {
			files = append(files, file)
		}
		return err
	})
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case len(files) == 0:
		return nil, fmt.Errorf("%s: matches no file", pattern)
	}
	return files, nil
}

func matchParts(pattern, name []string) bool {
	if len(pattern) == 0 || len(name) == 0 {
		return len(pattern) == len(name)
	}
	if pattern[0] == "**" {
		for i := range name {
			if matchParts(pattern[1:], name[i:]) {
				return true
			}
		}
		return len(pattern) == 1
	}
	ok, _ := path.Match(pattern[0], name[0])
	return ok && matchParts(pattern[1:], name[1:])
}

// isHistory reports whether a file found in a directory looks like a history:
// by its extension, and by fields that every history has in its first lines. One
// that cannot be read may be: reading it says what is wrong.
func isHistory(file string) bool {
	if !slices.Contains(historyExts, strings.ToLower(filepath.Ext(file))) {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return true
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 8<<10))
	if err != nil {
		return true
	}
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(head, []byte(w)) })
	}
	switch linearizability.Detect(head) {
	case linearizability.FormatUnknown:
		return false
	case linearizability.FormatJSONLines, linearizability.FormatJSONArray:
		return has(`"type"`, `"f"`) || has(`"meta"`, `"version"`)
	case linearizability.FormatEDN, linearizability.FormatEDNVector, linearizability.FormatEDNList, linearizability.FormatKVLog:
		return has(":type", ":f") || has(":meta", ":version")
	}
	return true
}

// historyExt is that of a history which is made of another.
func historyExt(file string) string {
	if strings.ToLower(filepath.Ext(file)) == ".edn" {
		return ".edn"
	}
	return ".jsonl"
}

// places settles where what is written about the files goes.
func (r *checkRun) places(files []string) error {
	for _, dir := range []string{r.HTML, r.SVG, r.Reduce} {
		if r.inDirectory(dir) {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
		}
	}
	for _, out := range []string{r.HTML, r.SVG, r.Reduce, r.JUnit} {
		for _, file := range files {
			if sameFile(out, file) {
				return fmt.Errorf("%s: is a history to check: name another file to write to", out)
			}
		}
	}
	r.names = make(map[string]string, len(files))
	taken := make(map[string]bool)
	for _, file := range files {
		base := strings.Trim(strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(filepath.Clean(file)), "-.")
		if file == "-" {
			base = "stdin"
		}
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name] = true
		r.names[file] = name
	}
	return nil
}

// sameFile reports whether two names are of one file that is there.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

// inDirectory reports whether an output is a directory, with a file in it for
// each history.
func (r *checkRun) inDirectory(out string) bool {
	if out == "" {
		return false
	}
	info, err := os.Stat(out)
	return r.many || err == nil && info.IsDir() || os.IsPathSeparator(out[len(out)-1])
}

// place is where something about a file is written; empty if it is not.
func (r *checkRun) place(out, file, ext string) string {
	if !r.inDirectory(out) {
		return out
	}
	return filepath.Join(out, r.names[file]+ext)
}
