package verifier

import (
	"context"
	"errors"
	"io"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/keys"
)

// TrustBundle verifies a trust bundle (.tsb): its envelope, which is strict
// reading, every leaf, the root and the signature, and its content, which is
// executed again from the evidence that the file packages. Both layers are
// judged even when the other fails. It always returns a report; when ctx ends
// before the file is read the report says interrupted, with exit code 1.
func TrustBundle(ctx context.Context, r io.Reader, o Options) *Report {
	t := newTrial(&o)
	if err := o.Validate(); err != nil {
		t.fail("options", ExitUsage, Finding{Code: CodeBadOptions, Detail: err.Error()})
		return t.close("the options contradict each other")
	}
	in := &input{ctx: ctx, r: r, progress: o.Progress}
	in.text.differs = true // nobody asks about the text of an evidence bundle
	b, err := bundle.Read(in)
	if err != nil {
		return t.close(t.unread(ctx, err))
	}
	if name := o.forEvidence(); name != "" {
		t.fail("options", ExitUsage, Finding{Code: CodeBadOptions, Detail: name + " is for evidence bundles; this is a trust bundle"})
		return t.close("the options do not fit the file")
	}
	t.content.Bundle = b
	t.report.Content = t.content
	if !b.Canonical {
		t.warn("bytes", Finding{Code: CodeNotCanonical, Detail: "not the writer's bytes: white space, order or escapes differ; the content is judged by its values"})
	}
	if stopped := t.envelope(); stopped != "" {
		return t.close(stopped)
	}
	return t.close(t.execute())
}

// trial is one verification of a trust bundle.
type trial struct {
	o       *Options
	report  *Report
	content *Content

	errors, warnings findings
	rows             map[string]Check
	exit             int      // the worst of the errors
	decisive         *Finding // the first error of that exit code
	count            int      // errors
}

func newTrial(o *Options) *trial {
	return &trial{
		o: o, content: &Content{}, rows: make(map[string]Check),
		report: &Report{Kind: KindTrustBundle, Mode: Strict},
	}
}

func (t *trial) registry() engine.Registry {
	if t.o.Domains != nil {
		return t.o.Domains
	}
	return domains.All()
}

// fail records an error of a check, and what exit code it leads to.
func (t *trial) fail(check string, exit int, f Finding) {
	t.errors.add(f)
	t.count++
	if t.decisive == nil || severity(exit) > severity(t.exit) {
		t.exit, t.decisive = exit, &f
	}
	if t.rows[check].Status != StatusFail {
		t.rows[check] = Check{check, StatusFail, f.Detail}
	}
}

func (t *trial) warn(check string, f Finding) {
	t.warnings.add(f)
	if s := t.rows[check].Status; s != StatusFail && s != StatusWarn {
		t.rows[check] = Check{check, StatusWarn, f.Detail}
	}
}

// note says what became of a check about which there is no finding.
func (t *trial) note(check string, status Status, detail string) {
	if _, known := t.rows[check]; !known {
		t.rows[check] = Check{check, status, detail}
	}
}

// unread reports why there is no bundle and returns why the other checks did
// not run.
func (t *trial) unread(ctx context.Context, err error) string {
	var format *bundle.FormatError
	switch {
	case errors.As(err, &format):
		t.fail("format", ExitEnvelope, malformed(format))
		return "the file is not a trust bundle that can be read"
	case ctx.Err() != nil:
		t.fail("read", ExitNotRun, Finding{Code: CodeInterrupted, Detail: ctx.Err().Error()})
		return "the verification was interrupted"
	}
	t.fail("read", ExitEnvelope, Finding{Code: CodeUnreadable, Detail: Escape(err.Error())})
	return "the file was not read"
}

// malformed is the finding of a fault that leaves nothing to judge.
func malformed(err error) Finding {
	f := Finding{Code: CodeDecode, Detail: sentence(err.Error())}
	var format *bundle.FormatError
	if errors.As(err, &format) {
		f.Code, f.Where = Code(format.Code), clip(format.Where)
	}
	return f
}

// told is a finding of the rooms below, made safe to print.
func told(f bundle.Finding) Finding {
	return Finding{Code: Code(f.Code), Where: clip(f.Where), Detail: sentence(f.Detail)}
}

// envelope judges everything but the content. What it returns says why nothing
// more can be judged; "": it can.
func (t *trial) envelope() string {
	b := t.content.Bundle
	t.content.StoredRoot = clip(b.StoredRoot())
	integrity, err := b.CheckIntegrity()
	if err != nil {
		t.fail("manifest", ExitEnvelope, malformed(err))
		return "the file has no manifest that could be held against its content"
	}
	t.content.Root, t.content.Withheld = integrity.Root, integrity.Withheld
	for _, f := range integrity.Findings {
		t.fail(envelopeCheck(f.Code), ExitEnvelope, told(f))
	}
	if integrity.Root == "" {
		t.note("leaves", StatusSkipped, "the digests are of another recipe")
		t.note("root", StatusSkipped, "the digests are of another recipe")
	}
	t.note("leaves", StatusPass, counted(uint64(integrity.Leaves), "leaf digest")+" recomputed")
	t.note("root", StatusPass, integrity.Root)
	return t.signature(integrity)
}

// signature judges who signed the root, by the caller's list.
func (t *trial) signature(integrity *bundle.Integrity) string {
	found, err := t.content.Bundle.CheckSignature()
	if err != nil {
		t.fail("signature", ExitEnvelope, malformed(err))
		t.report.Signature.State = keys.StateInvalid
		return "the signature section is malformed"
	}
	if !found.Signed {
		t.unsigned()
		return ""
	}
	fits := integrity.Root != "" && integrity.Root == integrity.Stored
	switch {
	case found.Finding != nil:
		t.fail("signature", ExitEnvelope, told(*found.Finding))
	case !fits:
		t.fail("signature", ExitEnvelope, Finding{Code: CodeSignatureInvalid, Where: "signature",
			Detail: "the signature is one over the root that the file states, and this content does not have that root"})
	}
	t.note("signature", StatusPass, "fits the root")
	t.signedBy(found.PublicKey, found.Valid && fits)
	return ""
}

// signedBy fills in the state of a signature and holds it against the list.
func (t *trial) signedBy(public string, valid bool) {
	s := &t.report.Signature
	s.PublicKey = public
	claim := keys.Checked{Valid: valid}
	if key, err := keys.ParsePublicKey(public); err == nil {
		claim.Key, s.KeyID = key, key.ID()
		if entry, listed := t.o.Trust.Lookup(key); listed {
			s.Comment = entry.Comment
		}
	}
	s.State = keys.Judge(&claim, t.o.Trust)
	switch s.State {
	case keys.StateUnpinned:
		t.note("trust", StatusNotApplicable, "nobody said which keys to trust")
	case keys.StateInvalid:
		t.note("trust", StatusSkipped, "the signature does not hold, so it shows no signer")
	case keys.StateUntrusted:
		t.fail("trust", ExitEnvelope, Finding{Code: CodeUntrustedKey, Detail: "validly signed by key " + s.KeyID + ", which is not in the list of trusted keys"})
	case keys.StateRevoked:
		t.fail("trust", ExitEnvelope, Finding{Code: CodeRevokedKey, Detail: "signed by key " + s.KeyID + ", which the list revokes"})
	case keys.StateRetired:
		t.warn("trust", Finding{Code: CodeRetiredKey, Detail: "signed by key " + s.KeyID + ", which the list holds as retired: fine for old evidence only"})
	}
	t.note("trust", StatusPass, "signed by trusted key "+s.KeyID)
}

func (t *trial) unsigned() {
	state := keys.Judge(nil, t.o.Trust)
	t.report.Signature.State = state
	t.note("signature", StatusNotApplicable, "there is none")
	switch {
	case t.o.RequireSigned:
		t.fail("trust", ExitEnvelope, Finding{Code: CodeSignatureNeeded, Detail: "a signature is required and there is none"})
	case state.Refused(t.o.Trust != nil, t.o.AllowUnsigned):
		t.fail("trust", ExitEnvelope, Finding{Code: CodeSignatureNeeded, Detail: "there is a list of trusted keys and no signature"})
	default:
		t.warn("trust", Finding{Code: CodeUnsigned, Detail: "there is no signature; integrity shows that the file is the file, not who made it"})
	}
}
