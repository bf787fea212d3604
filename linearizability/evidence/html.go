package evidence

import (
	"errors"
	"io"
)

// WriteHTML writes p as a page.
func WriteHTML(w io.Writer, p Page) error { return errors.New("not drawn yet") }

// WriteSVG writes p as a picture.
func WriteSVG(w io.Writer, p Page) error { return errors.New("not drawn yet") }
