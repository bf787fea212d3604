package leasesql

import (
	"errors"
	"strings"
)

// The errors of drivers are read without importing any: by the methods that they
// share, or else by the text that the server sends.

// sqlStateTransient is true for class 40: the transaction was rolled back, for
// a deadlock or because it could not be serialized.
func sqlStateTransient(err error) bool {
	e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	return ok && strings.HasPrefix(e.SQLState(), "40") && e.SQLState() != "40003" // statement_completion_unknown
}

// sqliteTransient is true while another connection writes: SQLITE_BUSY (5) and
// SQLITE_LOCKED (6), whatever their extended code.
func sqliteTransient(err error) bool {
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return e.Code()&0xff == 5 || e.Code()&0xff == 6
	}
	return err != nil && (strings.Contains(err.Error(), "database is locked") || strings.Contains(err.Error(), "database table is locked"))
}

// mariadbTransient is true for a deadlock (1213), and a wait for a lock that
// took too long (1205): the transaction is rolled back by whoever gets it.
func mariadbTransient(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Error 1213 ") || strings.Contains(err.Error(), "Error 1205 "))
}
