package verifier

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/chaind/chaind/segments"
)

// Evidence verifies an evidence bundle, read as a stream. It always returns a
// report; when ctx ends first the report says interrupted, with exit code 1.
func Evidence(ctx context.Context, r io.Reader, o Options) *Report {
	j := newJudge(&o)
	f := j.facts
	if err := o.Validate(); err != nil {
		j.refuse()
		j.fail(CodeBadOptions, "%v", err)
		return j.close("the options contradict each other")
	}
	in := &input{ctx: ctx, r: r}
	in.text.differs = o.Mode == Reference // which does not ask
	env, deviations, err := segments.Scan(in, runtime.GOMAXPROCS(0), j.visit(in))
	j.report.Segments = f.walk.Count
	if err != nil {
		return j.close(j.unread(ctx, err, deviations))
	}
	if name := o.forBundles(); name != "" {
		j.refuse()
		j.fail(CodeBadOptions, "%s is for trust bundles; this is an evidence bundle", name)
		return j.close("the options do not fit the file")
	}
	j.env = env
	j.describe()
	if o.Mode == Reference {
		j.asReference()
		return j.close("an earlier check failed")
	}
	switch {
	case len(deviations) > 0:
		j.note("bytes", StatusSkipped, "the encoding differs already")
	case !in.text.same(env, f.walk.Count):
		j.note("bytes", StatusWarn, "not the emitter's bytes: white space, order or escapes differ, the content does not")
	}
	j.strictly(deviations)
	return j.close("")
}

// newJudge fills in the default mode. Findings of strict mode are made while
// segments pass; reference mode starts with a clean sheet at the end.
func newJudge(o *Options) *judge {
	if o.Mode == "" {
		o.Mode = Strict
	}
	f := &facts{asked: o.asked(), plan: o.ExpectPlan}
	j := &judge{
		o: o, facts: f, report: &Report{Kind: KindEvidence, Mode: o.Mode},
		errors: &f.errors, warnings: &f.warnings, notes: make(map[string]Check),
	}
	if o.Mode == Reference {
		j.errors, j.warnings = &findings{}, &findings{}
	}
	return j
}

// input stops reading when the context ends, counts, and watches the text.
type input struct {
	ctx context.Context
	r   io.Reader
	n   int64

	text     original
	progress func(Progress) // called for each mebibyte; nil: by nobody
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := in.r.Read(p)
	if in.progress != nil && (in.n+int64(n))>>20 != in.n>>20 {
		in.progress(Progress{Bytes: in.n + int64(n)})
	}
	in.n += int64(n)
	in.text.feed(p[:n])
	return n, err
}

func (j *judge) visit(in *input) func(*segments.Scanned) error {
	return func(s *segments.Scanned) error {
		in.text.segment(s, j.facts.walk.Count)
		j.facts.observe(&s.Segment, s.Digest)
		if count := j.facts.walk.Count; count%progressEvery == 0 {
			if j.o.Progress != nil {
				j.o.Progress(Progress{count, in.n})
			}
			return in.ctx.Err()
		}
		return nil
	}
}

// refuse drops what was found in a file that turned out not to be read: half
// of a bundle supports no finding.
func (j *judge) refuse() {
	*j.errors, *j.warnings = findings{}, findings{}
}

// unread reports why there is no bundle and returns why the other checks did
// not run.
func (j *judge) unread(ctx context.Context, err error, deviations []segments.Deviation) string {
	j.refuse()
	var decode *segments.DecodeError
	switch {
	case errors.As(err, &decode):
		j.undecoded(decode, deviations)
	case errors.Is(err, segments.ErrTooLarge):
		j.fail(CodeDecode, "%s", Escape(err.Error()))
	case ctx.Err() != nil:
		j.fail(CodeInterrupted, "%v", ctx.Err())
		return "the verification was interrupted"
	default:
		j.fail(CodeUnreadable, "%s", Escape(err.Error()))
		return "the file was not read"
	}
	return "the file does not decode"
}

// undecoded tells a member that is there twice from other faults: the reader
// reports it at the same place as a deviation.
func (j *judge) undecoded(err *segments.DecodeError, deviations []segments.Deviation) {
	offset := err.Offset
	finding := Finding{Code: CodeDecode, Detail: Escape(err.Error()), Path: err.Path, Offset: &offset}
	for _, d := range deviations {
		if d.Code == segments.DuplicateMember && d.Offset == err.Offset && j.o.Mode == Strict {
			finding.Code = CodeDuplicateMember
		}
	}
	j.errors.add(finding)
}

// describe fills in what a decoded bundle says about itself.
func (j *judge) describe() {
	r := j.report
	r.Scope, r.DeclaredHead, r.ComputedHead = &j.env.Scope, j.env.Head, j.facts.head()
	r.Plan = clip(j.facts.lastPlan)
	r.SealCount, r.Seals = j.facts.order.Seals, j.facts.seals
}

// close sums up. stopped says why checks after the first failed one did not
// run; "": all ran.
func (j *judge) close(stopped string) *Report {
	r := j.report
	list := strictChecks
	if r.Mode == Reference {
		list = referenceChecks
	}
	r.Checks = j.settle(list, stopped)
	r.Errors, r.Warnings = j.errors.sorted(), j.warnings.sorted()
	if r.Mode == Reference && r.Reference == nil {
		r.Reference = &Outcomes{}
	}
	r.conclude()
	return r
}
