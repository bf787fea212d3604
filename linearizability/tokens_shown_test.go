package linearizability

import "testing"

// TestATokenShownIsATokenTaken: a token that nobody is on record to have been
// granted was taken by an acquire whose outcome is unknown, also where only a
// get or a release shows it.
func TestATokenShownIsATokenTaken(t *testing.T) {
	verdicts(t, Model{Name: ModelLease}, []verdictCase{
		{"by a get", true, `{"meta":{"version":1,"first":1}}
{"time":0,"process":0,"type":"invoke","f":"acquire","owner":"b","ttl":3}
{"time":0,"process":0,"type":"ok","f":"acquire","token":1}
{"time":4,"process":1,"type":"invoke","f":"acquire","owner":"a","ttl":3}
{"time":8,"process":2,"type":"invoke","f":"acquire","owner":"b","ttl":9}
{"time":17,"process":3,"type":"invoke","f":"get"}
{"time":17,"process":3,"type":"ok","f":"get","owner":"b","token":3}`},
		{"by a release", true, `{"time":0,"process":0,"type":"invoke","f":"acquire","owner":"a","ttl":2}
{"time":1,"process":1,"type":"invoke","f":"acquire","owner":"b","ttl":2}
{"time":1,"process":2,"type":"invoke","f":"release","owner":"a","token":1}
{"time":1,"process":2,"type":"ok","f":"release"}
{"time":10,"process":3,"type":"invoke","f":"acquire","owner":"a","ttl":7}
{"time":10,"process":3,"type":"ok","f":"acquire","token":3}`},
	})
}
