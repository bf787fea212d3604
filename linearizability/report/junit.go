package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"fencepost/linearizability"
)

// The elements and attributes are those of Jenkins' junit-10.xsd, which the
// other readers take too.
type (
	xmlSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		xmlCounts
		Suite xmlSuite `xml:"testsuite"`
	}
	xmlCounts struct {
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Time     string `xml:"time,attr"` // seconds
	}
	xmlSuite struct {
		Name string `xml:"name,attr"`
		xmlCounts
		Skipped    int           `xml:"skipped,attr"`
		Properties []xmlProperty `xml:"properties>property"`
		Cases      []xmlCase     `xml:"testcase"`
	}
	xmlProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	xmlCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Time    string      `xml:"time,attr"`
		Skipped *xmlSkipped `xml:"skipped"`
		Error   *xmlProblem `xml:"error"`
		Failure *xmlProblem `xml:"failure"`
		Out     string      `xml:"system-out,omitempty"`
	}
	xmlSkipped struct {
		Message string `xml:"message,attr"`
	}
	xmlProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit says how a report is written.
type JUnit struct {
	Suite string // the name of the one suite
	Model string // what the files were checked against
	// FailUnknown makes an unknown verdict an error, so that the reader's build
	// fails; else the test was skipped. A file that cannot be read is always an
	// error.
	FailUnknown bool
}

// Write writes one suite with a test for each file: a violated history is a
// failure. Characters that XML cannot say are replaced.
func (j JUnit) Write(w io.Writer, outcomes []Outcome) error {
	s := xmlSuite{Name: j.Suite, Properties: []xmlProperty{{"model", j.Model}}}
	var total time.Duration
	operations := 0
	for _, o := range outcomes {
		c := xmlCase{Class: j.Suite, Name: o.File, Time: seconds(o.Elapsed)}
		var message, text string
		for i, p := range o.Problems() {
			if i == 0 {
				message = p.Title + ": " + p.Text
			}
			text += place(o.File, p.Line) + ": " + p.Title + ": " + p.Text + "\n"
		}
		switch r := o.Result(); {
		case r == linearizability.Violated:
			s.Failures++
			c.Failure = &xmlProblem{message, string(r), text}
		case r == linearizability.Unknown && (j.FailUnknown || o.Err != nil):
			s.Errors++
			c.Error = &xmlProblem{message, string(r), text}
		case r == linearizability.Unknown:
			s.Skipped++
			c.Skipped = &xmlSkipped{message}
		}
		if o.Err == nil {
			c.Out = o.Verdict.String()
			operations += o.Verdict.Activity.Operations
		}
		total += o.Elapsed
		s.Cases = append(s.Cases, c)
	}
	s.Tests, s.Time = len(outcomes), seconds(total)
	s.Properties = append(s.Properties, xmlProperty{"operations", fmt.Sprint(operations)})
	doc := xmlSuites{Name: j.Suite, xmlCounts: s.xmlCounts, Suite: s}
	b, err := xml.MarshalIndent(doc, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	}
	if err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// place is where a problem is, as compilers say it, so that editors find it.
func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", strings.ReplaceAll(file, "\n", " "), line)
}
