package storetest

import (
	"bytes"
	"encoding/json"

	"fencepost/props/kit"
	"fencepost/props/script"
)

// Replay judges the store by a counterexample that an earlier run has left,
// as found in the File of a failure. It is unknown whether a file holds that
// cannot be read.
func Replay(open script.Open, o kit.Options, path string, data []byte) kit.Outcome {
	var head struct{ Kind string }
	if err := json.Unmarshal(data, &head); err == nil && head.Kind == script.FileKind {
		return replayScript(open, o, path, data)
	}
	return replaySchedule(open, o, path, data) // which has no kind
}

func replayScript(open script.Open, o kit.Options, path string, data []byte) (out kit.Outcome) {
	c, err := script.Read(bytes.NewReader(data), path)
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	err = kit.Attempt(func() {
		if r := script.Run(open, o, c.Steps); r.Breach != nil {
			out = kit.Outcome{Failure: failure(r)}
		}
	})
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	return out
}
