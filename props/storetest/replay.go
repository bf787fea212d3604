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
	return watched(open, func(open script.Open) kit.Outcome { return replay(open, o, path, data) })
}

func replay(open script.Open, o kit.Options, path string, data []byte) kit.Outcome {
	if isSchedule(data) {
		return replaySchedule(open, o, path, data)
	}
	c, err := script.Read(bytes.NewReader(data), path)
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	return kit.Try(func() kit.Outcome {
		if r := script.Run(open, o, c.Steps); r.Breach != nil {
			return hinted(o, kit.Outcome{Failure: failure(r)})
		}
		return kit.Outcome{}
	})
}

// isSchedule tells the files of [Random], which have actions, from all others.
func isSchedule(data []byte) bool {
	var head struct {
		Subject *string
		Actions json.RawMessage
	}
	return json.Unmarshal(data, &head) == nil && head.Subject != nil && head.Actions != nil
}
