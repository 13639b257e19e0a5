package store

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// errCoding is what a decoder says whatever is wrong: the checksum has been
// checked before, so nobody can do anything with more detail.
var errCoding = errors.New("value is not laid out as it should be")

// codec writes values or reads them back, field by field in one order: each
// record has one method that hands its fields to a codec, whichever way. Unsigned
// integers are uvarints, digests 32 bytes, strings and byte strings carry their
// length in front, optional fields a byte 0 or 1. A read copies what it keeps.
type codec struct {
	buf     []byte
	reading bool
	err     error
}

// finish ends a read: everything must have been understood.
func (c *codec) finish() error {
	if c.err == nil && c.reading && len(c.buf) != 0 {
		c.err = errCoding
	}
	return c.err
}

// take cuts n bytes off what is left to read.
func (c *codec) take(n uint64) []byte {
	if c.err != nil || n > uint64(len(c.buf)) {
		c.err = errCoding
		return nil
	}
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

func (c *codec) uint(p *uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *p)
		return
	}
	n, size := binary.Uvarint(c.buf)
	if size <= 0 {
		c.err = errCoding
		return
	}
	c.buf = c.buf[size:]
	*p = n
}

func (c *codec) uint32(p *uint32) {
	n := uint64(*p)
	c.uint(&n)
	if n > 1<<32-1 {
		c.err = errCoding
	}
	*p = uint32(n)
}

func (c *codec) int64(p *int64) {
	n := uint64(*p)
	c.uint(&n)
	*p = int64(n)
}

func (c *codec) byte(p *byte) {
	if !c.reading {
		c.buf = append(c.buf, *p)
		return
	}
	if b := c.take(1); b != nil {
		*p = b[0]
	}
}

func (c *codec) bool(p *bool) {
	var b byte
	if *p {
		b = 1
	}
	c.byte(&b)
	if b > 1 {
		c.err = errCoding
	}
	*p = b == 1
}

func (c *codec) bytes(p *[]byte) {
	n := uint64(len(*p))
	c.uint(&n)
	if !c.reading {
		c.buf = append(c.buf, *p...)
		return
	}
	*p = append([]byte(nil), c.take(n)...)
}

func (c *codec) digest(p *segments.Digest) {
	if !c.reading {
		c.buf = append(c.buf, p[:]...)
		return
	}
	copy(p[:], c.take(uint64(len(p))))
}

// text codes a string of any named type.
func text[S ~string](c *codec, p *S) {
	n := uint64(len(*p))
	c.uint(&n)
	if !c.reading {
		c.buf = append(c.buf, *p...)
		return
	}
	*p = S(c.take(n))
}

// Words that most records hold: they are written as their place in the list.
var (
	verbs    = []events.Verb{"", events.VerbIntent, events.VerbCommit, events.VerbStep, events.VerbSeal}
	verdicts = []events.Verdict{"", events.Appended, events.Attempted, events.Finished, events.Duplicate, events.Late, events.Rejected}
	phases   = []events.Phase{"", events.PhaseEnd, events.PhaseBegin, events.PhaseFailed}
	outcomes = []events.Outcome{"", events.Open, events.Succeeded, events.Failed, events.Cancelled, events.Abandoned}
)

// otherWord says that a word follows which is not in its list: a verb that
// nobody knows, in a rejected event.
const otherWord = 255

// word codes a string that is one of a list, most of the time.
func word[S ~string](c *codec, p *S, list []S) {
	code := byte(otherWord)
	if i := slices.Index(list, *p); i >= 0 {
		code = byte(i)
	}
	c.byte(&code)
	switch {
	case code == otherWord:
		text(c, p)
	case !c.reading:
	case int(code) < len(list):
		*p = list[code]
	default:
		c.err = errCoding
	}
}

// present codes whether *p is there, and makes it when it is read.
func present[T any](c *codec, p **T) bool {
	there := *p != nil
	c.bool(&there)
	if c.reading && there && c.err == nil {
		*p = new(T)
	}
	return there && c.err == nil
}

func (c *codec) optUint(p **uint64) {
	if present(c, p) {
		c.uint(*p)
	}
}

func (c *codec) optDigest(p **segments.Digest) {
	if present(c, p) {
		c.digest(*p)
	}
}

func (c *codec) optText(p **string) {
	if present(c, p) {
		text(c, *p)
	}
}

// optBytes keeps nil and empty apart.
func (c *codec) optBytes(p *[]byte) {
	there := *p != nil
	c.bool(&there)
	if !there || c.err != nil {
		return
	}
	c.bytes(p)
	if *p == nil {
		*p = []byte{}
	}
}

// texts keeps nil and empty apart.
func (c *codec) texts(p *[]string) {
	n := uint64(len(*p)) + 1
	if *p == nil {
		n = 0
	}
	c.uint(&n)
	if c.reading && n > 0 {
		if n-1 > uint64(len(c.buf)) { // every string takes a byte at least
			c.err = errCoding
			return
		}
		*p = make([]string, n-1)
	}
	for i := range *p {
		text(c, &(*p)[i])
	}
}

func (c *codec) scope(s *segments.Scope) {
	c.uint32(&s.SchemaVersion)
	text(c, &s.TenantID)
	c.optText(&s.LogicalSessionID)
	text(c, &s.PromptHash)
	text(c, &s.ExecuteSessionID)
	text(c, &s.CatalogCGSHash)
	c.uint32(&s.DomainRevision)
	text(c, &s.EntryID)
}

func (c *codec) anchors(a *segments.Anchors) {
	c.optText(&a.PlanCommitRef)
	c.optText(&a.TraceID)
	c.optUint(&a.PlanCallIndex)
}

func (c *codec) key(k *events.Key) {
	text(c, &k.Tenant)
	text(c, &k.PromptHash)
	text(c, &k.Session)
	text(c, &k.Chain)
}

// Codes of the kinds; 0 is no kind.
const (
	kindIntent byte = iota + 1
	kindCommit
	kindStep
	kindSeal
)

func kindCode(k segments.Kind) byte {
	switch k.(type) {
	case *segments.IntentBound:
		return kindIntent
	case *segments.CompCommitted:
		return kindCommit
	case *segments.StepExecuted:
		return kindStep
	case *segments.RunSealed:
		return kindSeal
	}
	return 0
}

func newKind(code byte) segments.Kind {
	switch code {
	case kindIntent:
		return new(segments.IntentBound)
	case kindCommit:
		return new(segments.CompCommitted)
	case kindStep:
		return new(segments.StepExecuted)
	case kindSeal:
		return new(segments.RunSealed)
	}
	return nil
}

// kind codes a segment payload that may be absent.
func (c *codec) kind(p *segments.Kind) {
	code := kindCode(*p)
	c.byte(&code)
	if c.reading {
		*p = newKind(code)
		if *p == nil && code != 0 {
			c.err = errCoding
		}
	}
	switch k := (*p).(type) {
	case *segments.IntentBound:
		c.digest(&k.IntentDigest)
		c.uint32(&k.IntentLen)
	case *segments.CompCommitted:
		text(c, &k.PlanCommitIDHex)
		c.digest(&k.CompSemanticSHA256)
		c.texts(&k.StepTopo)
	case *segments.StepExecuted:
		text(c, &k.StepID)
		c.uint32(&k.StepIndex)
		c.optText(&k.EntryID)
		c.texts(&k.RequestFingerprints)
		text(c, &k.SourceLine)
		c.digest(&k.ParsedExprDigest)
	case *segments.RunSealed:
		text(c, &k.RunID)
		c.optText(&k.StepID)
		c.optUint(&k.ResourceIndex)
		c.digest(&k.RunBundleDigest)
	}
}
