module example.com/sqllease

go 1.26.0

require (
	fencepost v0.0.0
	modernc.org/sqlite v1.62.0
)

replace fencepost => ../..
