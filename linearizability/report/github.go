package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"fencepost/linearizability"
)

// WriteAnnotations writes a GitHub workflow command a line for each problem of
// the outcomes. A runner that reads them on a job's output marks the lines of
// the files. What is unknown is a warning, or an error if failUnknown; a file
// that cannot be read is an error.
//
// https://docs.github.com/actions/reference/workflow-commands-for-github-actions
func WriteAnnotations(w io.Writer, outcomes []Outcome, failUnknown bool) error {
	for _, o := range outcomes {
		level := "error"
		if o.Err == nil && o.Verdict.Result == linearizability.Unknown && !failUnknown {
			level = "warning"
		}
		for _, p := range o.Problems() {
			var properties []string
			if o.File != "-" { // which has no lines in the repository
				properties = append(properties, "file="+escapeProperty(filepath.ToSlash(o.File)))
				if p.Line > 0 {
					properties = append(properties, fmt.Sprintf("line=%d", p.Line))
				}
			}
			properties = append(properties, "title="+escapeProperty("fencepost: "+p.Title))
			if _, err := fmt.Fprintf(w, "::%s %s::%s\n", level, strings.Join(properties, ","), escapeData(p.Text)); err != nil {
				return fmt.Errorf("report: annotations: %w", err)
			}
		}
	}
	return nil
}

// The rules of actions/toolkit, packages/core/src/command.ts.
var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func escapeData(s string) string     { return dataEscapes.Replace(s) }
func escapeProperty(s string) string { return propertyEscapes.Replace(s) }
