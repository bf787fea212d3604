package leasesql

type guardTexts struct{}

func sqliteGuard() guardTexts   { return guardTexts{} }
func postgresGuard() guardTexts { return guardTexts{} }
func mariadbGuard() guardTexts  { return guardTexts{} }
