package linearizability_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fencepost/linearizability"
)

// labelled is a row of a manifest of histories.
type labelled struct {
	file, model, expected, line, finding, what string
}

func readManifest(t *testing.T, path string) []labelled {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []labelled
	for s := bufio.NewScanner(f); s.Scan(); {
		c := strings.Split(s.Text(), "\t")
		if len(c) != 6 {
			t.Fatalf("%s: %q has %d columns, want 6", path, s.Text(), len(c))
		}
		rows = append(rows, labelled{c[0], c[1], c[2], c[3], c[4], c[5]})
	}
	return rows[1:]
}

const ownHistories = "../testdata/histories"

// TestLabelledHistories checks the histories of our own, which were written by
// hand: the verdict, the line at fault, and the finding with whom it blames.
func TestLabelledHistories(t *testing.T) {
	rows := readManifest(t, filepath.Join(ownHistories, "manifest.tsv"))
	files, err := filepath.Glob(filepath.Join(ownHistories, "*.jsonl"))
	if err != nil || len(files) != len(rows) {
		t.Fatalf("%d histories, %d rows in the manifest (%v)", len(files), len(rows), err)
	}
	for _, row := range rows {
		t.Run(strings.TrimSuffix(row.file, ".jsonl"), func(t *testing.T) {
			if !strings.HasPrefix(row.file, row.expected+"-") {
				t.Errorf("the name does not say that it %s", row.expected)
			}
			model, err := linearizability.ParseModel(row.model)
			if err != nil {
				t.Fatal(err)
			}
			h, err := linearizability.ReadFile(filepath.Join(ownHistories, row.file))
			if err != nil {
				t.Fatal(err)
			}
			v, err := linearizability.Check(t.Context(), h, linearizability.Options{Model: model})
			if err != nil {
				t.Fatal(err)
			}
			if string(v.Result) != row.expected {
				t.Errorf("%s: want %s: %s", v, row.expected, row.what)
			}
			if line := firstLine(v); line != row.line {
				t.Errorf("%s: the first line at fault is %s, want %s", v, line, row.line)
			}
			var found []string
			for _, f := range v.Findings {
				found = append(found, fmt.Sprintf("%s/%s", f.Invariant, f.Blame))
			}
			if row.finding == "-" && len(found) > 0 || row.finding != "-" && !slices.Contains(found, row.finding) {
				t.Errorf("found %v, want %s", found, row.finding)
			}
		})
	}
}

// firstLine is the line at fault by the order of the answers, "-" if none is.
func firstLine(v linearizability.Verdict) string {
	for _, p := range v.Partitions {
		if p.Result == linearizability.Violated {
			return strconv.Itoa(p.Line)
		}
	}
	return "-"
}
