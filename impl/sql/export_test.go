package leasesql

// WithoutStatement is d with all renewals judged by the Record.
func WithoutStatement(d Dialect) Dialect {
	d.renewAll, d.renewAt = "", ""
	return d
}

// PostgresNow is the server's clock as an expression.
const PostgresNow = postgresNow

// WithStatement is d with its statement of renewals edited.
func WithStatement(d Dialect, edit func(string) string) Dialect {
	if d.renewAll != "" {
		d.renewAll = edit(d.renewAll)
	}
	if d.renewAt != "" {
		d.renewAt = edit(d.renewAt)
	}
	return d
}
