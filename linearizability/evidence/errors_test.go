package evidence_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"fencepost/linearizability/evidence"
)

func TestContradictionsAreNamed(t *testing.T) {
	for want, change := range map[string]func(p *evidence.Page){
		`the page has the verdict "fine"; want holds, violated or unknown`:              func(p *evidence.Page) { p.Verdict = "fine" },
		`the page has unit 7; want Nanoseconds or Order`:                                func(p *evidence.Page) { p.Unit = 7 },
		`resource "disk" has the verdict "fine"; want holds, violated, unknown or none`: func(p *evidence.Page) { p.Resources[1].Verdict = "fine" },
		`resource "disk": operation 0 is there twice; give each its own ID`:             func(p *evidence.Page) { p.Resources[1].Operations[0].ID = 0 },
		`resource "shard-1": operation 0 returns at 1, before its call at 1000000000`:   func(p *evidence.Page) { p.Resources[0].Operations[0].Return = 1 },
		`resource "shard-1": operation 0 has an outcome but no return; want Info`:       func(p *evidence.Page) { p.Resources[0].Operations[0].Return = evidence.Unbounded },
		`resource "shard-1": operation 0 has outcome 9; want OK, Fail or Info`:          func(p *evidence.Page) { p.Resources[0].Operations[0].Outcome = 9 },
		`resource "shard-1": operation 0 has no call`:                                   func(p *evidence.Page) { p.Resources[0].Operations[0].Call = -evidence.Unbounded },
		`finding "storage-safety" names operation 99, which no resource has`:            func(p *evidence.Page) { p.Findings[0].Ops = []int{99} },
		`resource "disk": a write names operation 0, which it does not have`:            func(p *evidence.Page) { p.Resources[1].Writes[0].Op = 0 },
		`resource "disk": the steps of its highest token are not in order of time`:      func(p *evidence.Page) { p.Resources[1].Highest[0].At = 99 * sec },
		`resource "shard-1": its order has operation 99, which it does not have`:        func(p *evidence.Page) { p.Resources[0].Order.Placed[0].Op = 99 },
		`resource "shard-1": its order has operation 1 twice`:                           func(p *evidence.Page) { p.Resources[0].Order.Placed[0].Op = 1 },
		`resource "disk": its order is stuck at operation 0, which it does not have`:    func(p *evidence.Page) { p.Resources[1].Order.Stuck = 0 },
		`resource "disk": operation 0 was tried, which it does not have`:                func(p *evidence.Page) { p.Resources[1].Order.Tried[0].Op = 0 },
	} {
		p := frozenClient(true)
		change(&p)
		for name, write := range map[string]func(io.Writer, evidence.Page) error{"html": evidence.WriteHTML, "svg": evidence.WriteSVG} {
			var b bytes.Buffer
			if err := write(&b, p); err == nil || err.Error() != "evidence: "+want || b.Len() > 0 {
				t.Errorf("%s: error is %v, want %s; %d bytes were written", name, err, want, b.Len())
			}
		}
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	if err := evidence.WriteHTML(brokenPipe{}, jepsen()); !errors.Is(err, errPipe) {
		t.Errorf("error is %v, not the writer's", err)
	}
	if err := evidence.WriteSVG(brokenPipe{}, jepsen()); !errors.Is(err, errPipe) {
		t.Errorf("error is %v, not the writer's", err)
	}
}
