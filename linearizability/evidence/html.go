package evidence

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed picture.svg
var pictureText string

//go:embed picture.css
var pictureCSS string

//go:embed page.html
var pageText string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// The page has the picture's templates, and its own.
var (
	pictureTemplate = template.Must(template.New("picture.svg").Parse(pictureText))
	pageTemplate    = template.Must(template.Must(template.New("picture.svg").Parse(pictureText)).New("page.html").Parse(pageText))
)

// The palettes. Both keep their colours apart for all common kinds of colour
// blindness, and text on a bar readable.
var (
	light = strings.NewReplacer("$paper", "#ffffff", "$ink", "#17202d", "$faint", "#5b6777", "$rule", "#dde2e9", "$soft", "#f5f7f9", "$on", "#ffffff",
		"$alarm", "#c8102e", "$good", "#0a7548", "$warn", "#9a5a00",
		"$hn", "#56657d", "$h0", "#0a62ad", "$h1", "#a65f00", "$h2", "#007a6e", "$h3", "#8944a8", "$h4", "#66691c")
	dark = strings.NewReplacer("$paper", "#11161d", "$ink", "#e8ecf2", "$faint", "#9ba7b6", "$rule", "#2b333f", "$soft", "#191f28", "$on", "#0d1117",
		"$alarm", "#ff6478", "$good", "#4cc38a", "$warn", "#e6a64a",
		"$hn", "#93a4bc", "$h0", "#6cb4f5", "$h1", "#eba94c", "$h2", "#49c8b7", "$h3", "#c79ae8", "$h4", "#c1c45d")
)

// pictureStyle is the style of a picture: literal colours, as programs for
// slides know no variables.
func pictureStyle() template.CSS {
	form, colours, _ := strings.Cut(pictureCSS, "/* Colours")
	_, colours, _ = strings.Cut(colours, "*/\n")
	return template.CSS(form + light.Replace(colours) + "@media screen and (prefers-color-scheme: dark) {\n" + dark.Replace(colours) + "}\n")
}

// pageStyle is the style around the picture.
func pageStyle() template.CSS {
	const names = ":root { --paper: $paper; --ink: $ink; --faint: $faint; --rule: $rule; --soft: $soft; --on: $on; --alarm: $alarm; --good: $good; --warn: $warn; }\n"
	return template.CSS(":root { color-scheme: light dark; }\n" + light.Replace(names) + "@media screen and (prefers-color-scheme: dark) { " + dark.Replace(names) + "}\n" + pageCSS)
}

// document is what the template of the page draws.
type document struct {
	Picture                              *picture
	Style                                template.CSS
	Script                               template.JS
	Policy                               string
	Title, Model, Reason, Blame, Command string
	Verdict                              Verdict
	Counts                               string
	Focused, Several                     bool
	Notes                                []string
	Findings                             []finding
	Orders                               []orderTable
	Tables                               []opTable
}

type finding struct {
	Number                    int
	Class, Check, Text, Blame string
	Lines                     []Line
	Placed                    bool // it is somewhere in the picture
}

type orderTable struct {
	Resource, Start string
	Partial         bool
	Rows            []orderRow
	Left            int // operations of the order that are not drawn
	Stuck           string
	StuckID         int
	Tried           []orderRow
}

type orderRow struct {
	Number, ID      int
	Label, By, Text string
}

type opTable struct {
	Resource string
	Rows     []tableRow
}

type tableRow struct {
	ID                                           int
	When, By, Label, Outcome, Lines, Details, At string
	Class                                        string
}

// WriteHTML writes p as one page that needs nothing else, and no network: it
// opens from a file, prints, and is complete without its script, which adds
// zoom, pan and inspection. Equal pages give equal bytes. Of the operations at
// most 2,000 are drawn, those nearest to what is violated, and the page says
// how many were left out. The error is w's, or says what in p contradicts
// itself.
func WriteHTML(w io.Writer, p Page) error {
	if err := p.check(); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(pageJS))
	d := p.document()
	d.Script = template.JS(pageJS)
	d.Policy = fmt.Sprintf("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'", base64.StdEncoding.EncodeToString(sum[:]))
	return execute(w, pageTemplate, "page.html", d)
}

// WriteSVG writes the picture of p as a file of its own, with a heading and a
// legend: what the page of [WriteHTML] shows when it opens. Its colours follow
// the reader's choice of light and dark. The error is as WriteHTML's.
func WriteSVG(w io.Writer, p Page) error {
	if err := p.check(); err != nil {
		return err
	}
	picture, _ := p.draw(true)
	return execute(w, pictureTemplate, "picture.svg", picture)
}

// execute writes all or, if the template fails, nothing.
func execute(w io.Writer, t *template.Template, name string, data any) error {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (p *Page) document() document {
	picture, d := p.draw(false)
	doc := document{
		Picture: picture, Style: picture.Style + pageStyle(), Title: headline(p.Title), Model: name(p.Model), Reason: prose(p.Reason),
		Blame: name(string(p.Blame)), Command: prose(p.Command), Verdict: p.Verdict,
	}
	for _, n := range p.Notes {
		doc.Notes = append(doc.Notes, prose(n))
	}
	drawn := make(map[int]bool)
	for _, f := range picture.Flags {
		drawn[f.Number] = true
	}
	for i := range p.Findings {
		f := &p.Findings[i]
		row := finding{Number: i + 1, Class: "notes", Check: name(f.Check), Text: strings.TrimSuffix(prose(f.Text), "."), Blame: name(string(f.Blame)), Placed: drawn[i+1]}
		if f.Violates {
			row.Class = "breaks"
		}
		for _, l := range f.Lines {
			row.Lines = append(row.Lines, Line{l.Number, prose(l.Text)})
		}
		doc.Findings = append(doc.Findings, row)
	}
	doc.Counts, doc.Focused, doc.Several = d.counts(), d.focus.any, len(picture.Flags) > 1
	for i := range d.resources {
		r := &d.resources[i]
		what := strings.TrimSpace(name(r.Model) + " " + name(r.Name))
		doc.Tables = append(doc.Tables, d.table(r, what))
		if o := &r.Order; len(o.Placed) > 0 || o.Partial {
			doc.Orders = append(doc.Orders, d.orderTable(r, what))
		}
	}
	return doc
}

// table tells the operations of r.
func (d *drawing) table(r *Resource, what string) opTable {
	t := opTable{Resource: what}
	for i := range r.Operations {
		op := &r.Operations[i]
		row := tableRow{
			ID: op.ID, When: during(Span{op.Call, op.Return}, d.Unit), By: name(op.Process), Label: op.said(), Outcome: outcome(op),
			Lines: lines(op.Lines), Details: prose(op.Details),
		}
		if op.Violates {
			row.Class = "violates"
		}
		if p, ok := d.placed[op.ID]; ok {
			row.At = fmt.Sprintf("place %d in the order", p.number)
			if p.state != "" {
				row.At += "; then " + p.state
			}
		}
		if r.Order.Partial && op.ID == r.Order.Stuck {
			row.At = "finds no place in the order"
			if i := slices.IndexFunc(r.Order.Tried, func(a Attempt) bool { return a.Op == op.ID }); i >= 0 {
				row.At += ": " + prose(r.Order.Tried[i].Why)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// orderTable tells the order of r.
func (d *drawing) orderTable(r *Resource, what string) orderTable {
	t := orderTable{Resource: what, Start: prose(r.Order.Start), Partial: r.Order.Partial, Left: len(r.Order.Placed)}
	for _, o := range r.Order.Placed {
		if p, ok := d.placed[o.Op]; ok {
			t.Rows = append(t.Rows, orderRow{Number: p.number, ID: o.Op, Label: p.op.said(), By: name(p.op.Process), Text: p.state})
			t.Left--
		}
	}
	if op := d.lookup[r.Order.Stuck]; op != nil && r.Order.Partial {
		t.Stuck, t.StuckID = name(op.Process)+": "+op.said(), op.ID
	}
	for _, a := range r.Order.Tried[:min(len(r.Order.Tried), mostOthers)] {
		row := orderRow{ID: a.Op, Text: prose(a.Why)}
		if op := d.lookup[a.Op]; op != nil {
			row.Label, row.By = op.said(), name(op.Process)
		}
		t.Tried = append(t.Tried, row)
	}
	return t
}
