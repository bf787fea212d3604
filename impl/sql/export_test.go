package leasesql

// WithoutStatement is d with all renewals judged by the Record.
func WithoutStatement(d Dialect) Dialect {
	d.renewAll = ""
	return d
}

// PostgresNow is the server's clock as an expression.
const PostgresNow = postgresNow
