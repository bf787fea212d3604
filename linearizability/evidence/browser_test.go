package evidence_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fencepost/linearizability/evidence"
)

//go:embed testdata/visit.js
var visit string

// browser runs chromium without a window, and returns what it printed, and what
// the page wrote to its console.
func browser(t *testing.T, args ...string) (stdout, console string) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: the page is not tested in a browser (Debian: apt-get install chromium)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--user-data-dir=" + t.TempDir(), "--virtual-time-budget=20000",
	}, args...)
	cmd := exec.CommandContext(ctx, path, args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		blank := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
			"--user-data-dir="+t.TempDir(), "--dump-dom", "about:blank")
		if noStart := blank.Run(); noStart != nil {
			t.Skipf("chromium does not start here, not even on a blank page: the page is not tested in a browser (%v)", noStart)
		}
		t.Fatalf("chromium: %v\n%s", err, log.String())
	}
	// The rest is chromium's, about the machine.
	var said []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			said = append(said, line)
		}
	}
	return out.String(), strings.Join(said, "")
}

// file writes a page for the browser.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

var (
	policy  = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	visited = regexp.MustCompile(`(?s)<pre id="visited">(.*?)</pre>`)
)

// visitor puts the visitor of testdata/visit.js into a page, which its policy
// forbids otherwise. It runs before the page's own script, and goes on after.
// The page is in a frame: chromium has no window as narrow as a phone.
func visitor(t *testing.T, p evidence.Page, width, height int) string {
	t.Helper()
	page := policy.ReplaceAllString(htmlOf(t, p), "")
	at := strings.LastIndex(page, "<script>")
	page = page[:at] + "<script>" + visit + "</script>\n" + page[at:]
	return file(t, fmt.Sprintf(`<!doctype html><meta charset="utf-8"><body><iframe width="%d" height="%d" style="border: 0" srcdoc="%s"></iframe></body>`, width, height, html.EscapeString(page)))
}

// visits runs the visitor and reports what it found wrong. The names of
// its checks are returned.
func visits(t *testing.T, p evidence.Page, width, height int) []string {
	t.Helper()
	dom, log := browser(t, "--window-size=1400,1000", "--dump-dom", visitor(t, p, width, height))
	if log != "" {
		t.Errorf("the page writes to the console:\n%s", log)
	}
	found := visited.FindStringSubmatch(dom)
	if found == nil {
		t.Fatalf("the visitor did not come to an end:\n%s", log)
	}
	var checks []struct {
		Name, Saw string
		OK        bool
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(found[1])), &checks); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
		if !c.OK {
			t.Errorf("%s: saw %s", c.Name, c.Saw)
		}
	}
	return names
}

func TestInABrowser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page          evidence.Page
		width, height int
		want          int  // checks at the least
		long          bool // only where there is time
	}{
		"desktop, a long history": {jepsen(), 1280, 900, 30, true},
		"desktop, a story":        {frozenClient(true), 1280, 900, 30, false},
		"phone, a long history":   {jepsen(), 390, 844, 30, false},
		"phone, thousands":        {many(5000), 390, 844, 15, true},
		"phone, a story":          {frozenClient(true), 390, 844, 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long && os.Getenv("FENCEPOST_LONG") == "" {
				t.Skip("set FENCEPOST_LONG=1 to visit this page too")
			}
			if names := visits(t, c.page, c.width, c.height); len(names) < c.want {
				t.Errorf("only %d things were checked: %q", len(names), names)
			}
		})
	}
}

// TestThePolicyOfThePageAdmitsItsScript: the page as it is written, strings
// that mean harm and all, runs its script and nothing else.
func TestThePolicyOfThePageAdmitsItsScript(t *testing.T) {
	t.Parallel()
	p := jepsen()
	p.Title, p.Reason = harm, `"><svg onload="document.body.className='harmed'">`
	p.Resources[0].Operations[3].Label = harm
	dom, log := browser(t, "--dump-dom", file(t, htmlOf(t, p)))
	if log != "" {
		t.Errorf("the page writes to the console:\n%s", log)
	}
	if !strings.Contains(dom, `<body class="live">`) {
		t.Error("the script of the page did not run")
	}
}

// TestWithoutItsScriptThePictureIsThere: it is drawn, and no button does
// nothing.
func TestWithoutItsScriptThePictureIsThere(t *testing.T) {
	page := script.ReplaceAllString(htmlOf(t, frozenClient(true)), "")
	for _, want := range []string{">write x=7: landed</text>", ">A · token 1 (waived)</text>", ">4 s</text>", `id="tools" role="toolbar" aria-label="picture" hidden="hidden"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

var pageCount = regexp.MustCompile(`/Type /Pages\s*/Count (\d+)|/Count (\d+)\s*/`)

func TestItPrints(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]evidence.Page{"story": frozenClient(true), "long": jepsen()} {
		if name == "long" && os.Getenv("FENCEPOST_LONG") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.pdf")
			browser(t, "--no-pdf-header-footer", "--print-to-pdf="+path, file(t, htmlOf(t, p)))
			pdf, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			count := pageCount.FindSubmatch(pdf)
			if !bytes.HasPrefix(pdf, []byte("%PDF")) || count == nil {
				t.Fatal("what was printed is no PDF, or does not say how many pages it has")
			}
			if n := string(count[1]) + string(count[2]); n != "1" && n != "2" && n != "3" {
				t.Errorf("it takes %s pages", n)
			}
		})
	}
}
