package leasesql

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"fencepost/impl/lease"
)

// row is one lease as the table has it, and when it was read.
type row struct {
	rec  lease.Record
	boot string        // the clock of rec.Expires
	now  time.Duration // by the store's clock, once the row was locked
}

// scanner is a *[sql.Row], or *[sql.Rows] at one.
type scanner interface{ Scan(dest ...any) error }

func scan(rows scanner) (key string, r row, err error) {
	var token, ttl, expires, now int64
	var status uint8
	var holder string
	if err := rows.Scan(&key, &token, &holder, &ttl, &status, &expires, &r.boot, &now); err != nil {
		return "", row{}, err
	}
	h, err := parseHolder(holder)
	if err != nil {
		return "", row{}, fmt.Errorf("row %q of fencepost_lease: %w; was it written by hand?", key, err)
	}
	r.rec = lease.Record{
		Durable: lease.Durable{Token: lease.Token(token), Holder: h, TTL: time.Duration(ttl), Status: lease.Status(status)},
		Expires: time.Duration(expires),
	}
	r.now = time.Duration(now)
	return key, r, nil
}

// on is r by the clock that boot names. An instant of another clock says
// nothing, so that the tenure starts anew; whoever learns of it has to write it
// down, or it would start anew for the next one, too.
func (r row) on(boot string) (_ row, restored bool) {
	if r.boot == boot || r.rec.Status == lease.Free {
		return r, false
	}
	r.rec, r.boot = lease.Restore(r.rec.Durable, r.now), boot
	return r, true
}

// handle answers req. A token beyond what the column holds is none that is left.
func (r row) handle(lockDelay time.Duration, req lease.Request) (lease.Record, lease.Reply) {
	next, rep := r.rec.Handle(r.now, lockDelay, req)
	if next.Token > math.MaxInt64 {
		return r.rec, req.To(lease.CodeInvalid)
	}
	return next, rep
}

// record is a row as JSON, for statements about many.
type record struct {
	Resource string `json:"resource"`
	Token    int64  `json:"token"`
	Holder   string `json:"holder"`
	TTL      int64  `json:"ttl"`
	Status   uint8  `json:"status"`
	Expires  int64  `json:"expires"`
	Boot     string `json:"boot"`
}

func (r record) args() []any {
	return []any{r.Token, r.Holder, r.TTL, r.Status, r.Expires, r.Boot, r.Resource}
}

func recordOf(key string, rec lease.Record, boot string) record {
	return record{
		Resource: key, Token: int64(rec.Token), Holder: formatHolder(rec.Holder), TTL: int64(rec.TTL),
		Status: uint8(rec.Status), Expires: int64(rec.Expires), Boot: boot,
	}
}

// longest is how many bytes of a name are its own key: indexes end at a few
// hundred or thousand.
const longest = 512

const hashed = "sha256:"

// Key is the primary key of resource in the tables of this package, and what
// [Channel] carries: the name itself, or a hash of one that is no text to every
// database, or too long.
func Key(resource string) string {
	if len(resource) <= longest && isText(resource) && !strings.HasPrefix(resource, hashed) {
		return resource
	}
	sum := sha256.Sum256([]byte(resource))
	return hashed + hex.EncodeToString(sum[:])
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// formatHolder is the holder's own text form, quoted as in Go where that is no
// text to every database.
func formatHolder(h lease.Holder) string {
	s := h.String()
	if isText(s) && !strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}

func parseHolder(s string) (lease.Holder, error) {
	if strings.HasPrefix(s, `"`) {
		unquoted, err := strconv.Unquote(s)
		if err != nil {
			return lease.Holder{}, fmt.Errorf("%w: %s", lease.ErrHolder, s)
		}
		s = unquoted
	}
	return lease.ParseHolder(s)
}

// readable is whether h can be read back. No other is a holder.
func readable(h lease.Holder) bool { return h.IsZero() || h.Valid() }
