package report_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fencepost/linearizability"
	"fencepost/linearizability/report"
	"fencepost/model"
)

// outcomes has one of each kind.
func outcomes() []report.Outcome {
	return []report.Outcome{
		{File: "good.jsonl", Elapsed: 250 * time.Millisecond, Verdict: linearizability.Verdict{
			Result: linearizability.Holds, Model: "fencepost", Activity: linearizability.Activity{Operations: 40}}},
		{File: "runs/a,b:100%.jsonl", Elapsed: time.Second, Verdict: linearizability.Verdict{
			Result: linearizability.Violated, Model: "fencepost", Activity: linearizability.Activity{Operations: 2},
			Partitions: []linearizability.Partition{
				{Model: "lease", Key: "k", Result: linearizability.Violated, Reason: "no order explains 50% of\nit <&\x00>", Line: 7},
				{Model: "storage", Key: "s", Result: linearizability.Holds},
			},
			Findings: []linearizability.Finding{
				{Check: "overlap", Invariant: model.BeliefSafety, Blame: linearizability.BlameStore, Text: "two leaders", Lines: []int{3, 9}, Indexes: []int64{2, 8}, Violates: true},
				{Check: "overlap", Invariant: model.BeliefSafety, Blame: linearizability.BlameStore, Text: "only worth knowing", Lines: []int{4}, Indexes: []int64{3}},
			}}},
		{File: "slow.edn", Verdict: linearizability.Verdict{Result: linearizability.Unknown, Model: "fencepost", Reason: "no time to look"}},
		{File: "broken.edn", Err: &linearizability.SyntaxError{File: "broken.edn", Line: 3, Field: "time", Msg: "missing"}},
		{File: "-", Err: errors.New("gone")},
	}
}

func TestAnnotationsAreEscaped(t *testing.T) {
	var b strings.Builder
	if err := report.WriteAnnotations(&b, outcomes(), false); err != nil {
		t.Fatal(err)
	}
	want := `::error file=runs/a%2Cb%3A100%25.jsonl,line=7,title=fencepost%3A not linearizable::lease "k": no order explains 50%25 of%0Ait <&` + "\x00" + `>
::error file=runs/a%2Cb%3A100%25.jsonl,line=9,title=fencepost%3A overlap::two leaders; blame the store (line 3, line 9)
::warning file=slow.edn,title=fencepost%3A unknown::no time to look
::error file=broken.edn,line=3,title=fencepost%3A cannot be read::broken.edn:3: field "time": missing
::error title=fencepost%3A cannot be checked::gone
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := report.WriteAnnotations(&b, outcomes(), true); err != nil || !strings.Contains(b.String(), "::error file=slow.edn") {
		t.Errorf("what is unknown does not fail: %v\n%s", err, b.String())
	}
}

// suites is what a reader of JUnit XML looks at.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   []struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
		Property []struct {
			Name  string `xml:"name,attr"`
			Value string `xml:"value,attr"`
		} `xml:"properties>property"`
		Case []struct {
			Class   string   `xml:"classname,attr"`
			Name    string   `xml:"name,attr"`
			Time    string   `xml:"time,attr"`
			Failure *problem `xml:"failure"`
			Error   *problem `xml:"error"`
			Skipped *problem `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func TestJUnitCountsWhatItSays(t *testing.T) {
	for _, failUnknown := range []bool{false, true} {
		var b bytes.Buffer
		if err := (report.JUnit{Suite: "s", Model: "fencepost", FailUnknown: failUnknown}).Write(&b, outcomes()); err != nil {
			t.Fatal(err)
		}
		var got suites
		if err := xml.Unmarshal(b.Bytes(), &got); err != nil || len(got.Suite) != 1 {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		s := got.Suite[0]
		errors, skipped := 2, 1
		if failUnknown {
			errors, skipped = 3, 0
		}
		if s.Tests != 5 || len(s.Case) != 5 || s.Failures != 1 || s.Errors != errors || s.Skipped != skipped || s.Time != "1.250" {
			t.Errorf("%+v", s)
		}
		if s.Case[0].Name != "good.jsonl" || s.Case[0].Time != "0.250" || s.Case[0].Failure != nil || s.Case[0].Error != nil || s.Case[0].Skipped != nil {
			t.Errorf("good: %+v", s.Case[0])
		}
		if f := s.Case[1].Failure; f == nil || !strings.Contains(f.Message, "not linearizable") || strings.Count(f.Text, "runs/a,b:100%.jsonl:") != 2 || !strings.Contains(f.Text, "<&\uFFFD>") {
			t.Errorf("violated: %+v", s.Case[1].Failure)
		}
		if (s.Case[2].Skipped == nil) == !failUnknown || (s.Case[2].Error == nil) == failUnknown {
			t.Errorf("unknown: %+v", s.Case[2])
		}
		if s.Case[3].Error == nil || s.Case[4].Error == nil {
			t.Errorf("unread: %+v", s.Case[3:])
		}
		if len(s.Property) != 2 || s.Property[0].Value != "fencepost" || s.Property[1].Value != "42" {
			t.Errorf("properties: %+v", s.Property)
		}
	}
}

// TestJUnitIsInTheOrderOfTheSchema: junit-10.xsd wants properties before the
// tests, and in a test what went wrong before its output.
func TestJUnitIsInTheOrderOfTheSchema(t *testing.T) {
	allowed := map[string]string{ // element: its parent
		"testsuites": "", "testsuite": "testsuites", "properties": "testsuite", "property": "properties", "testcase": "testsuite",
		"skipped": "testcase", "error": "testcase", "failure": "testcase", "system-out": "testcase",
	}
	var b bytes.Buffer
	if err := (report.JUnit{Suite: "s"}).Write(&b, outcomes()); err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(&b)
	stack, before := []string{""}, ""
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			if parent, ok := allowed[name]; !ok || parent != stack[len(stack)-1] {
				t.Errorf("<%s> inside <%s>", name, stack[len(stack)-1])
			}
			if before == "system-out" && stack[len(stack)-1] == "testcase" || name == "properties" && before == "testcase" {
				t.Errorf("<%s> after <%s>", name, before)
			}
			stack, before = append(stack, name), ""
		case xml.EndElement:
			before = e.Name.Local
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) != 1 {
		t.Errorf("open: %v", stack)
	}
}

func ExampleWriteAnnotations() {
	h, err := linearizability.Read(strings.NewReader(`{:process 0, :type :invoke, :f :read}
{:process 0, :type :ok, :f :read, :value 7}`), "runs/register.edn")
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := linearizability.Check(context.Background(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelRegister}})
	report.WriteAnnotations(os.Stdout, []report.Outcome{{File: h.Name, Verdict: v, Err: err}}, false)
	// Output:
	// ::error file=runs/register.edn,line=2,title=fencepost%3A not linearizable::register(nil): no order of the operations explains line 2: process 0: read → ok 7
}

func ExampleJUnit() {
	outcome := report.Outcome{File: "late.jsonl", Verdict: linearizability.Verdict{Result: linearizability.Unknown, Model: "lease", Reason: "no time to look"}}
	report.JUnit{Suite: "histories", Model: "lease"}.Write(os.Stdout, []report.Outcome{outcome})
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites name="histories" tests="1" failures="0" errors="0" time="0.000">
	//   <testsuite name="histories" tests="1" failures="0" errors="0" time="0.000" skipped="1">
	//     <properties>
	//       <property name="model" value="lease"></property>
	//       <property name="operations" value="0"></property>
	//     </properties>
	//     <testcase classname="histories" name="late.jsonl" time="0.000">
	//       <skipped message="unknown: no time to look"></skipped>
	//       <system-out>lease: unknown, 0 operations in 0 partitions: no time to look</system-out>
	//     </testcase>
	//   </testsuite>
	// </testsuites>
}
