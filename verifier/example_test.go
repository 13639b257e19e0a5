package verifier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

// example reads a signed bundle and the run snapshot that it seals.
func example() (*segments.Bundle, *segments.SealDocument) {
	const dir = "../testdata/plasm/p02-full-run-signed/"
	text, err := os.ReadFile(dir + "bundle.json")
	if err != nil {
		panic(err)
	}
	bundle, _, err := segments.ReadBundle(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	body, err := os.ReadFile(dir + "artifact.json")
	if err != nil {
		panic(err)
	}
	snapshot, err := segments.DecodeSealDocument(body)
	if err != nil {
		panic(err)
	}
	return bundle, snapshot
}

// trusted is a list of one key, as from a command's flag.
func trusted() *keys.TrustList {
	entries, err := keys.ParseFlags([]string{"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"})
	if err != nil {
		panic(err)
	}
	list, _, err := keys.Merge(entries)
	if err != nil {
		panic(err)
	}
	return list
}

// Strict verification of a file, as chaind verify does it.
func ExampleEvidence() {
	file, err := os.Open("../testdata/plasm/p02-full-run-signed/bundle.json")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	report := verifier.Evidence(context.Background(), file, verifier.Options{Trust: trusted()})
	fmt.Println(report.Verdict, report.ExitCode)
	fmt.Println(report.Summary)
	for _, check := range report.Checks {
		if check.Status != verifier.StatusPass {
			fmt.Println(check.Name, check.Status)
		}
	}
	// Output:
	// PASS 0
	// 6 segments, 1 sealed run, signature TRUSTED
	// location not_applicable
	// expected_head not_applicable
	// expected_plan not_applicable
	// run_seal not_applicable
	// anchors warn
}

// A hashed character was altered.
func ExampleVerify() {
	bundle, _ := example()
	head, err := verifier.Verify(bundle, trusted())
	fmt.Println(head, err)

	bundle.Segments[2].Kind.(*segments.StepExecuted).SourceLine += " "
	_, err = verifier.Verify(bundle, trusted())
	var refused *verifier.ReferenceError
	fmt.Println(errors.As(err, &refused), refused.Failure)
	// Output:
	// 5730719ed51e2821d8475bfd39459b2ba46119d73156d430ea25a67f0777e3a2 <nil>
	// true BrokenPrevLink
}

// The chain holds, but its steps do not follow the plan.
func ExampleServe() {
	bundle, _ := example()
	plan := bundle.Segments[1].Kind.(*segments.CompCommitted)
	plan.StepTopo[0], plan.StepTopo[2] = plan.StepTopo[2], plan.StepTopo[0]
	relinked := relink(bundle)
	_, err := verifier.Verify(relinked, nil)
	fmt.Println(err)
	_, err = verifier.Serve(relinked, nil)
	fmt.Println(err)
	// Output:
	// <nil>
	// StepTopoMismatch: step "stale" (segment seq 3) does not follow the committed plan of 3 steps
}

// relink hashes an altered chain anew, as a forger would, without a signature.
func relink(bundle *segments.Bundle) *segments.Bundle {
	var chain segments.Builder
	forged := &segments.Bundle{Envelope: bundle.Envelope}
	for _, segment := range bundle.Segments {
		forged.Segments = append(forged.Segments, chain.Append(segment.Kind, segment.EmittedAtMS))
	}
	forged.Head, forged.Signature = chain.Head, nil
	return forged
}

// The snapshot is not the one that was sealed.
func ExampleServeWithSeal() {
	bundle, snapshot := example()
	run := bundle.Segments[5].Kind.(*segments.RunSealed).RunID
	_, err := verifier.ServeWithSeal(bundle, trusted(), run, snapshot)
	fmt.Println(err)

	snapshot.RequestFingerprints[0] = "another request"
	_, err = verifier.ServeWithSeal(bundle, trusted(), run, snapshot)
	var refused *verifier.ReferenceError
	fmt.Println(errors.As(err, &refused), refused.Failure)
	// Output:
	// <nil>
	// true RunSealMismatch
}

// An emitter checks what it is about to let out.
func ExampleEmit() {
	bundle, _ := example()
	head, err := verifier.Emit(bundle)
	fmt.Println(head == *bundle.Head, err)

	bundle.Segments = bundle.Segments[:5]
	_, err = verifier.Emit(bundle)
	refused, _ := errors.AsType[*verifier.ReferenceError](err)
	fmt.Println(refused.Failure)
	// Output:
	// true <nil>
	// HeadMismatch
}

// A caller knows from elsewhere which plan was approved.
func ExampleCompID() {
	bundle, _ := example()
	fmt.Println(verifier.CompID(bundle, "f6cecc61220cc89ee203e79c2dfc4209578074e0e74513c89aa4f85f4e55db9b"))
	err := verifier.CompID(bundle, "another plan")
	fmt.Println(err)
	// Output:
	// <nil>
	// CompCommitMismatch: the first committed plan is "f6cecc61220cc89ee203e79c2dfc4209578074e0e74513c89aa4f85f4e55db9b", expected "another plan"
}

// Text from a file cannot move the cursor or imitate a verdict.
func ExampleEscape() {
	fmt.Println(verifier.Escape("run-1\x1b[2K\x1b[1A\r\nVERIFIED"))
	// Output: run-1\x1b[2K\x1b[1A\r\nVERIFIED
}

// A trust bundle is judged claim by claim: the file is intact, and re-executing
// it shows which of its claims do not follow from its evidence.
func ExampleTrustBundle() {
	file, err := os.Open("../testdata/tessera/forged.tsb")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	report := verifier.TrustBundle(context.Background(), file, verifier.Options{})
	fmt.Println(report.Verdict, report.ExitCode)
	fmt.Println(report.Summary)
	for _, claim := range report.Content.Claims {
		fmt.Println(claim.Index, "recorded:", claim.Recorded, "verdict:", claim.Verdict)
	}
	// Output:
	// FAIL 2
	// 2 of 3 claims do not re-derive: 0, 2; and 1 other fault
	// 0 recorded: true verdict: unsupported
	// 1 recorded: true verdict: re-derived
	// 2 recorded: true verdict: unsupported
}
