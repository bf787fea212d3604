package evidence

import (
	"html/template"
)

// picture is what the template draws. Coordinates are pixels; every mark also
// has its instants, as distances from the zero of the axis, by which page.js
// places it anew.
type picture struct {
	Width, Height  int
	Left, Right    float64 // of the canvas
	Top, Bottom    int     // of the canvas
	Axis, FlagY    int     // where its texts stand
	Head           *heading
	Style          template.CSS
	About          string
	Unit           Unit
	From, To       string // the extent
	First, Last    string // what is seen
	Whole          bool   // all of the extent is seen
	FocusA, FocusB string // what it surrounds
	Ticks          []tick
	Overview       overview
	Flags          []flag
	Faults         []fault
	FaultNames     []rowName
	Sections       []section
	Legend         []key
	Note           string // what is left out, and what the axis counts
	NoteY          int
	Spot           bool // some operations are evidence: the others stand back
	Hues           []string
}

// heading is the title of a picture that stands alone.
type heading struct {
	Title, Verdict, Facts string
	Lines                 []headLine
	FactsY                int
	ChipWidth             float64
}

type headLine struct {
	Y    int
	Text string
}

type section struct {
	Name, Model, Verdict string
	Y                    int
	ModelX, ChipX        float64
	Reason, Brief        string // Brief fits behind the verdict
	ReasonX              float64
	ChipWidth            float64
	Rows                 []rowName
	Bars                 []bar
	Stairs               *stairs
	Ops                  []mark
	Order                *order
}

// order is a linearization: a line through numbered dots, and where it ends.
type order struct {
	Line, LineData   string
	Dots             []dot
	Stuck            *dot
	Break, BreakData string // from the last dot to where it is stuck
	Why              string // it is stuck
}

type rowName struct {
	Y           int
	Name, Short string // Short fits the margin
	Brief       string // on a phone
	Life        bool   // a line runs through the row
}

// stretch is something from A to B: drawn from X, Width wide.
type stretch struct {
	A, B     string
	X, Width float64
	Y        int
	High     int
	Hidden   bool // outside of what is seen
}

// words are a text that is drawn as far as there is room.
type words struct {
	Full, Short string
	Shown       string
	X           float64
	Y           int
}

type bar struct {
	stretch
	Violates     bool
	Class, About string
	Kind         string // the pattern that fills it
	Must         *stretch
	Words        words
}

type fault struct {
	stretch
	Down  int // how far its shade reaches
	About string
	Point bool
	Words words
}

type flag struct {
	stretch // the band through the whole picture
	Number  int
	Class   string
	About   string
	Words   words
	First   bool // of its finding
}

// mark is an operation. Its label stands on its bar, or behind it up to the
// next mark of the row.
type mark struct {
	stretch
	ID       int
	Row      int
	Class    string
	Fade     string // the gradient that fills it
	About    string
	Words    words
	Inside   bool // the label is on the bar
	Glyph    string
	GlyphX   float64
	Middle   int
	Ring     stretch // around what violates or is evidence
	Violates bool
	Evidence bool

	call, done int64
}

type dot struct {
	A      string
	X      float64
	Y      int
	Number int
	ID     int
	Small  bool // no room for its number
	Hidden bool
	Row    int
}

// stairs are the highest token of a storage over time, and the writes.
type stairs struct {
	Line, LineData string
	Area, AreaData string
	Levels         []level
	Writes         []landing
}

type level struct {
	Y     int
	Token uint64
}

type landing struct {
	A                string
	X                float64
	Y                int
	ID               int
	Class            string
	About            string
	Landed, Violates bool
	Hidden           bool
}

// overview is all of the extent on one line, 1000 wide.
type overview struct {
	Y, High  int
	Path     string  // the operations
	X, Width float64 // what is seen
	Faults   []stretch
	Spans    []stretch // findings
}

type key struct {
	Kind, Text string
	X          float64
	Y          int
}

// Sizes, in pixels.
const (
	pictureWidth = 1200
	leftMargin   = 132
	rightMargin  = 20
	axisHeight   = 30
	flagHeight   = 26
	overHigh     = 30
	headHeight   = 34 // of a section
	barRow       = 26
	barHigh      = 18
	faultRow     = 22
	faultHigh    = 14
	opRow        = 28
	opHigh       = 18
	dotLane      = 14 // below the operations of a row
	stepHigh     = 20 // of one token
	fade         = 110
	shortFade    = 16
	leastWidth   = 5
	fontSize     = 11.5
	hues         = 5
)

// Canvas is the width of the canvas.
func (p *picture) Canvas() float64 { return p.Right - p.Left }

func (h *heading) ChipMiddle() float64 { return tenth(h.ChipWidth / 2) }
func (h *heading) TitleX() float64     { return tenth(h.ChipWidth + 34) }

func (s *section) ChipY() int          { return s.Y + 9 }
func (s *section) ChipMiddle() float64 { return tenth(s.ChipX + s.ChipWidth/2) }

// Ring is around the bar.
func (b *bar) Ring() stretch {
	return stretch{X: tenth(b.X - 3), Width: tenth(b.Width + 6), Y: b.Y - 3, High: b.High + 6}
}

// End is the right edge of the band.
func (f *flag) End() float64 { return tenth(f.X + f.Width) }

// Ringed says whether the mark stands out.
func (m *mark) Ringed() bool { return m.Violates || m.Evidence }

func (o *overview) Inner() int { return o.High - 2 }
