package verifier

// Code names an error or a warning. The names are part of the JSON report.
type Code string

// Errors of strict mode, from the Plasm evidence format, section 16.
const (
	CodeDecode           Code = "decode"
	CodeDuplicateMember  Code = "duplicate_member"
	CodeUnknownMember    Code = "unknown_member"
	CodeExplicitNull     Code = "explicit_null"
	CodeEmptyOptional    Code = "empty_optional"
	CodeNotAnObject      Code = "not_an_object"
	CodeNoncanonicalHex  Code = "noncanonical_hex"
	CodeNoncanonicalUUID Code = "noncanonical_uuid"
	CodeUnsafeInteger    Code = "unsafe_integer"
	CodeScopeVersion     Code = "scope_version"
	CodeEmptyChain       Code = "empty_chain"
	CodeBrokenPrev       Code = "broken_prev"
	CodeHeadMismatch     Code = "head_mismatch"
	CodeHeadMissing      Code = "head_missing"
	CodeSeqGap           Code = "seq_gap"
	CodeKindOrder        Code = "kind_order"
	CodeCompMissing      Code = "comp_missing"
	CodeTopoMismatch     Code = "topo_mismatch"
	CodePlanIDMismatch   Code = "plan_id_mismatch"
	CodeRunIDMismatch    Code = "run_id_mismatch"
	CodeSignatureNeeded  Code = "signature_required"
	CodeUntrustedKey     Code = "untrusted_key"
	CodeSignatureInvalid Code = "signature_invalid"
	CodeWeakPublicKey    Code = "weak_public_key"
	CodeScopeMismatch    Code = "scope_mismatch"
	CodeRunNotSealed     Code = "run_not_sealed"
	CodeRunSealMismatch  Code = "run_seal_mismatch"
	CodeHeadFileName     Code = "head_file_name_mismatch"
)

// Errors beyond section 16.
const (
	CodeRevokedKey   Code = "revoked_key"            // valid signature by a key that the trust list revokes
	CodeExpectedHead Code = "expected_head_mismatch" // the caller expected another head
	CodeExpectedPlan Code = "expected_plan_mismatch" // the caller expected another plan
	CodeUnreadable   Code = "unreadable"             // reading the file failed
	CodeInterrupted  Code = "interrupted"            // the context ended
	CodeBadOptions   Code = "bad_options"            // see Options.Validate
)

// Warnings of strict mode, from section 16, and three of ours. Warnings never
// reject. CodeStepsMissing is an error when [Options].RequireSteps asks for it.
const (
	CodeUnsigned        Code = "unsigned"
	CodeAnchors         Code = "anchors_unauthenticated"
	CodeStepsMissing    Code = "steps_missing"
	CodeUnsealed        Code = "unsealed"
	CodeClockRegression Code = "clock_regression"
	CodeArtifactAbsent  Code = "artifact_absent"
	CodeArtifactOther   Code = "artifact_of_another_run" // the run's snapshot says that it is another's
	CodeOtherPlans      Code = "other_plans"             // commits to other plans than the expected one, between those
	CodeRetiredKey      Code = "retired_key"             // valid signature by a key that the trust list retires
)

// Exit codes.
const (
	ExitPass     = 0
	ExitNotRun   = 1
	ExitSemantic = 2
	ExitDegraded = 3
	ExitEnvelope = 4
	ExitPolicy   = 5
	ExitUsage    = 64
)

// exits holds the errors that do not end in ExitEnvelope.
var exits = map[Code]int{
	CodeKindOrder:       ExitSemantic,
	CodeCompMissing:     ExitSemantic,
	CodeTopoMismatch:    ExitSemantic,
	CodePlanIDMismatch:  ExitSemantic,
	CodeRunIDMismatch:   ExitSemantic,
	CodeRunNotSealed:    ExitSemantic,
	CodeRunSealMismatch: ExitSemantic,
	CodeExpectedPlan:    ExitSemantic,
	CodeStepsMissing:    ExitSemantic,
	CodeInterrupted:     ExitNotRun,
	CodeBadOptions:      ExitUsage,
}

// exit gives the exit code that the error alone leads to.
func (c Code) exit() int {
	if code, listed := exits[c]; listed {
		return code
	}
	return ExitEnvelope
}

// WorstExit ranks exit codes of many files: 64, then 1 > 4 > 2 > 5 > 3 > 0. A
// code that is none of these ranks first, as a fault of the program.
func WorstExit(codes ...int) int {
	worst := ExitPass
	for _, code := range codes {
		if severity(code) > severity(worst) {
			worst = code
		}
	}
	return worst
}

func severity(code int) int {
	order := [...]int{ExitPass, ExitDegraded, ExitPolicy, ExitSemantic, ExitEnvelope, ExitNotRun, ExitUsage}
	for rank, known := range order {
		if code == known {
			return rank
		}
	}
	return len(order)
}
