package verifier

import (
	"strconv"

	"github.com/chaind/chaind/engine/run"
)

// maxWithheld is how many withheld items the JSON lists; the rest is counted.
const maxWithheld = 100

// appendContent writes the member "bundle" of a report.
func appendContent(dst []byte, c *Content) []byte {
	if c == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"root":{"stored":`...)
	dst = appendOptional(dst, c.StoredRoot)
	dst = append(dst, `,"computed":`...)
	dst = appendOptional(dst, c.Root)
	dst = append(dst, `},"canonical":`...)
	dst = strconv.AppendBool(dst, c.Bundle.Canonical)
	dst = appendRecorded(dst, c)
	dst = append(dst, `,"run":`...)
	dst = appendRun(dst, c.Run)
	dst = append(dst, `,"claims":`...)
	dst = appendList(dst, c.Claims, appendClaim)
	dst = append(dst, `,"answer":`...)
	if c.Result == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendText(dst, string(c.Result.Answer))
	}
	dst = appendOptional(append(dst, `,"action":`...), string(c.Action))
	dst = append(dst, `,"upstreams":`...)
	dst = appendList(dst, c.Upstreams, appendUpstream)
	dst = append(dst, `,"withheld":{"count":`...)
	dst = strconv.AppendInt(dst, int64(len(c.Withheld)), 10)
	dst = append(dst, `,"first":`...)
	dst = appendList(dst, c.Withheld[:min(len(c.Withheld), maxWithheld)], func(dst []byte, id *string) []byte { return appendText(dst, clip(*id)) })
	return append(dst, "}}"...)
}

// appendRecorded writes what the file says it is, and how much of it can be
// executed here.
func appendRecorded(dst []byte, c *Content) []byte {
	if c.Result == nil {
		return append(dst, `,"domain":null,"engine_version":null,"installed":[],"taxonomy":null,"question":null,"refused":null`...)
	}
	dst = appendMember(dst, "domain", c.Result.Domain)
	dst = appendMember(dst, "engine_version", c.Result.Version)
	dst = append(dst, `,"installed":`...)
	dst = appendList(dst, c.Result.Installed, func(dst []byte, v *string) []byte { return appendText(dst, *v) })
	dst = appendMember(dst, "taxonomy", string(c.Result.Taxonomy))
	dst = appendMember(dst, "question", c.Result.Recorded.Question)
	return strconv.AppendBool(append(dst, `,"refused":`...), c.Result.Recorded.Refused)
}

func appendClaim(dst []byte, c *ClaimReport) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(c.Index), 10)
	dst = appendMember(dst, "text", c.Text)
	dst = strconv.AppendBool(append(dst, `,"recorded":`...), c.Recorded)
	dst = appendMember(dst, "verdict", string(c.Verdict))
	dst = appendOptional(append(dst, `,"cause":`...), c.Cause)
	return append(dst, '}')
}

func appendUpstream(dst []byte, u *UpstreamReport) []byte {
	dst = append(dst, `{"root":`...)
	dst = appendText(dst, u.Root)
	dst = appendMember(dst, "verdict", string(u.Verdict))
	dst = appendOptional(append(dst, `,"cause":`...), u.Cause)
	dst = appendOptional(append(dst, `,"signature":`...), string(u.Signature))
	dst = appendOptional(append(dst, `,"public_key":`...), u.PublicKey)
	return append(dst, '}')
}

func appendRun(dst []byte, r *run.Summary) []byte {
	if r == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"outcome":`...)
	dst = appendText(dst, string(r.Outcome))
	dst = appendOptional(append(dst, `,"reason":`...), r.Reason)
	dst = appendMember(dst, "conformity", string(r.Conformity))
	dst = appendMember(dst, "coverage", string(r.Coverage))
	dst = appendMember(dst, "tenant", r.Tenant)
	dst = appendMember(dst, "prompt_hash", r.PromptHash)
	dst = appendMember(dst, "session", r.Session)
	dst = appendMember(dst, "chain", r.Chain)
	dst = strconv.AppendUint(append(dst, `,"segments":`...), r.Segments, 10)
	dst = appendOptional(append(dst, `,"head":`...), r.Head)
	dst = append(dst, `,"run_ids":`...)
	dst = appendList(dst, r.RunIDs, func(dst []byte, id *string) []byte { return appendText(dst, *id) })
	return append(dst, '}')
}
