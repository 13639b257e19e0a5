package segments_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"os"

	"github.com/chaind/chaind/segments"
)

// The worked example of the package documentation.
func Example() {
	const catalog = "b56b2e0444f6bc7e44151361ad2b0ddacf289cbcad84de2cbd3c330fb564d243"
	digest, n := segments.IntentDigest("  close the stalest open issue \n", catalog, "tracker", nil)

	var chain segments.Builder
	s := chain.Append(&segments.IntentBound{IntentDigest: digest, IntentLen: n}, nil)

	fmt.Printf("%s\n", segments.AppendPreimage(nil, s.Seq, s.Prev, s.Kind))
	fmt.Println(chain.Head)
	// Output:
	// {"kind":{"intent_digest":"23c8dd4d172e59104116a3f1dfb5145cf6eb7f339a0616224ff8beaf8271937a","intent_len":28,"kind":"intent_bound"},"prev":null,"schema_version":2,"seq":0}
	// 80e26c56acad11c3868a7eb214a6672b217fddc1424ce8457529439d0b7af5a6
}

func ExampleRead() {
	file, err := os.Open("../testdata/plasm/q09-uppercase-hex/bundle.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()

	var walk segments.Walk
	envelope, deviations, err := segments.Read(file, walk.Step)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(walk.Count, "segments, head as declared:", *walk.Head == *envelope.Head)
	fmt.Println(deviations[0].Code, "at", deviations[0].Path)
	// Output:
	// 6 segments, head as declared: true
	// noncanonical_hex at /chain/segments/0/kind/intent_digest
}

func ExampleBundleWriter() {
	scope := segments.Scope{SchemaVersion: segments.ScopeSchemaVersion, PromptHash: "p", ExecuteSessionID: "s"}
	var out bytes.Buffer
	w := segments.NewBundleWriter(&out, &scope)

	var chain segments.Builder
	for _, id := range []string{"open", "close"} {
		s := chain.Append(&segments.StepExecuted{StepID: id}, nil)
		if err := w.Write(&s); err != nil {
			fmt.Println(err)
		}
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	signature := segments.Sign(key, &scope, *chain.Head)
	if err := w.Close(chain.Head, segments.Anchors{}, signature); err != nil {
		fmt.Println(err)
	}

	b, deviations, err := segments.ReadBundle(&out)
	fmt.Println(len(b.Segments), len(deviations), err)
	fmt.Println(segments.VerifySignature(b.Signature, &b.Scope, *b.Head))
	// Output:
	// 2 0 <nil>
	// <nil>
}

func ExampleOrder() {
	var o segments.Order
	o.Add(&segments.Segment{Seq: 0, Kind: &segments.CompCommitted{StepTopo: []string{"open", "stale", "close"}}})
	o.Add(&segments.Segment{Seq: 1, Kind: &segments.StepExecuted{StepID: "stale"}})
	o.Add(&segments.Segment{Seq: 2, Kind: &segments.StepExecuted{StepID: "open"}})

	fmt.Println(o.KindOrder == nil)
	fmt.Printf("%+v\n", *o.First.Broken)
	fmt.Println(o.Missing(10))
	// Output:
	// true
	// {Seq:2 StepID:open}
	// [close] 1
}
