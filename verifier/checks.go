package verifier

// check is a row of a mode's fixed list: its name and the codes that it may
// find.
type check struct {
	name  string
	codes []Code
	pass  string // what a passed check has shown
}

var strictChecks = []check{
	{"options", []Code{CodeBadOptions}, "they agree"},
	{"read", []Code{CodeUnreadable, CodeInterrupted}, "without an error"},
	{"decode", []Code{CodeDecode}, "the file is an evidence bundle"},
	{"encoding", []Code{CodeDuplicateMember, CodeUnknownMember, CodeExplicitNull, CodeEmptyOptional, CodeNotAnObject,
		CodeNoncanonicalHex, CodeNoncanonicalUUID, CodeUnsafeInteger}, "as an honest emitter writes, order and white space aside"},
	{"bytes", nil, "byte for byte as an emitter writes the bundle"},
	{"scope_version", []Code{CodeScopeVersion}, "known"},
	{"location", []Code{CodeScopeMismatch, CodeHeadFileName}, "the file lies where its content says"},
	{"links", []Code{CodeEmptyChain, CodeBrokenPrev}, "each segment points at the one before it"},
	{"head", []Code{CodeHeadMissing, CodeHeadMismatch}, ""},
	{"expected_head", []Code{CodeExpectedHead}, "as expected"},
	{"numbering", []Code{CodeSeqGap}, "without gap or repeat"},
	{"order", []Code{CodeKindOrder}, "intent, plans, steps, seals"},
	{"plan", []Code{CodeCompMissing, CodePlanIDMismatch}, "committed, and named by its digest"},
	{"expected_plan", []Code{CodeExpectedPlan}, "as expected"},
	{"topology", []Code{CodeTopoMismatch}, ""},
	{"steps", []Code{CodeStepsMissing}, "every planned step was executed"},
	{"run_ids", []Code{CodeRunIDMismatch}, "each run id names its digest"},
	{"sealed", []Code{CodeUnsealed}, ""},
	{"run_seal", []Code{CodeRunNotSealed, CodeRunSealMismatch}, ""},
	{"times", []Code{CodeClockRegression}, "they do not run backwards; they are claims, not hashed"},
	{"anchors", []Code{CodeAnchors}, ""},
	{"signature", []Code{CodeSignatureInvalid, CodeWeakPublicKey}, "fits scope and head"},
	{"trust", []Code{CodeSignatureNeeded, CodeUntrustedKey, CodeRevokedKey, CodeRetiredKey}, ""},
}

var referenceChecks = []check{
	{"options", []Code{CodeBadOptions}, "they agree"},
	{"read", []Code{CodeUnreadable, CodeInterrupted}, "without an error"},
	{"decode", []Code{CodeDecode}, "the file is an evidence bundle"},
	{"links", []Code{CodeEmptyChain, CodeBrokenPrev}, "each segment points at the one before it"},
	{"head", []Code{CodeHeadMismatch}, "the declared head, if there is one, is that of the chain"},
	{"signature", []Code{CodeSignatureInvalid}, "fits scope and head"},
	{"topology", []Code{CodeCompMissing, CodeTopoMismatch}, "the steps follow the first plan"},
	{"run_seal", []Code{CodeRunNotSealed, CodeRunSealMismatch}, "the snapshot has the sealed digest"},
	{"expected_head", []Code{CodeExpectedHead}, "as expected"},
	{"expected_plan", []Code{CodeExpectedPlan}, "as expected"},
	{"signed", []Code{CodeSignatureNeeded}, "there is a signature"},
}

// settle turns findings and notes into the report's checks. A finding outranks
// a note; a check that was found nothing about has passed, unless the file
// stopped before it.
func (j *judge) settle(list []check, stopped string) []Check {
	rows := make([]Check, len(list))
	halt := false
	for i, c := range list {
		rows[i] = j.row(c)
		switch {
		case rows[i].Status == StatusFail:
			halt = halt || stopped != ""
		case halt && j.notes[c.name].Name == "":
			rows[i] = Check{c.name, StatusSkipped, stopped}
		}
	}
	return rows
}

func (j *judge) row(c check) Check {
	for _, found := range []struct {
		in *findings
		as Status
	}{{j.errors, StatusFail}, {j.warnings, StatusWarn}} {
		for _, f := range found.in.sorted() {
			for _, code := range c.codes {
				if f.Code == code {
					return Check{c.name, found.as, f.Detail}
				}
			}
		}
	}
	if note, known := j.notes[c.name]; known {
		return note
	}
	return Check{c.name, StatusPass, c.pass}
}
