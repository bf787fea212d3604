package linearizability_test

import (
	"fmt"
	"os"
	"strings"

	"fencepost/linearizability"
)

// A history is read event by event, however long it is.
func ExampleReader_Open() {
	const text = `{"meta":{"version":1,"eps":5}}
{"index":0,"time":10,"process":0,"type":"invoke","f":"acquire","key":"shard-1","owner":"a#1"}
{"index":1,"time":90,"process":0,"type":"ok","f":"acquire","key":"shard-1","token":7}
`
	s, err := linearizability.Reader{}.Open(strings.NewReader(text), "run.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Format(), "eps", s.Meta().Eps)
	for e, err := range s.Events() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Time, e.Type, e.F, e.Field("token"))
	}
	// Output:
	// jsonl eps 5
	// 10 invoke acquire nil
	// 90 ok acquire 7
}

// The values of jepsen.independent are a key and the value proper.
func ExampleReader() {
	const text = `{:process 0, :type :invoke, :f :write, :value ["x" 3]}`
	h, err := linearizability.Reader{Independent: true}.Read(strings.NewReader(text), "history.edn")
	fmt.Println(h.Events[0].Field("key"), h.Events[0].Field("value"), err)
	// Output: "x" 3 <nil>
}

// A log has no times: that they are lost is said.
func ExampleWriter_Write() {
	h := linearizability.History{Meta: linearizability.DefaultMeta(), Events: []linearizability.Event{
		{Index: 0, Time: 5, Type: linearizability.Invoke, F: "read"},
		{Index: 1, Time: 9, Type: linearizability.OK, F: "read", Fields: []linearizability.Field{{Name: "value", Value: linearizability.Int(3)}}},
	}}
	losses, err := linearizability.Writer{Format: linearizability.FormatLog}.Write(os.Stdout, &h)
	fmt.Println(losses, err)
	// Output:
	// INFO  jepsen.util - 0	:invoke	:read	nil
	// INFO  jepsen.util - 0	:ok	:read	3
	// [time of 2 events is lost] <nil>
}

// One operation a line is what people like to read, and grep.
func ExampleWriter_Convert() {
	const text = `{:index 0, :time 5, :process 0, :type :invoke, :f :acquire, :key "shard-1"}
{:index 1, :time 7, :process :nemesis, :type :info, :f :cut, :value "n1"}
{:index 2, :time 9, :process 0, :type :ok, :f :acquire, :token 12}`
	s, err := linearizability.Reader{}.Open(strings.NewReader(text), "history.edn")
	if err != nil {
		fmt.Println(err)
		return
	}
	var ops strings.Builder
	losses, err := linearizability.Writer{Format: linearizability.FormatOps}.Convert(&ops, s)
	_, lines, _ := strings.Cut(ops.String(), "anchor=\"grant\"\n")
	fmt.Print(lines)
	fmt.Println(len(losses), err)
	// Output:
	// 0@5..2@9	0	acquire	ok	key="shard-1" -> token=12
	// 1@7	-	cut	fault	value="n1"
	// 0 <nil>
}

func ExampleParseFormat() {
	f, err := linearizability.ParseFormat("edn-list")
	fmt.Println(f, err)
	_, err = linearizability.ParseFormat("yaml")
	fmt.Println(err)
	// Output:
	// edn-list <nil>
	// "yaml" is no format of a history: want one of jsonl, json, edn, edn-vector, edn-list, ops, log, kv-log
}
