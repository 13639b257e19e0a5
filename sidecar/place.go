package sidecar

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/segments"
)

// Place names an execute session, the unit under which evidence lies.
type Place struct {
	Tenant     string // "" is the empty tenant
	PromptHash string // 64 lower-case hex digits
	Session    string // 32 lower-case hex digits
}

// Class says what kind of chain an evidence bundle holds; it is the name of the
// directory beside which others of its kind lie.
type Class string

// The classes of evidence.
const (
	Heads         Class = "heads"         // conforming: the reference accepts every file here
	Unplanned     Class = "unplanned"     // no plan was committed, nothing else is wrong
	Nonconforming Class = "nonconforming" // the chain broke its plan or its order
)

// Validate returns an error that wraps [ErrName] when a member is not in its form.
func (p Place) Validate() error {
	switch {
	case p.Tenant != "" && !isTenant(p.Tenant):
		return fmt.Errorf("%w: tenant %q", ErrName, clip(p.Tenant))
	case !isHex(p.PromptHash, 64):
		return fmt.Errorf("%w: prompt hash %q", ErrName, clip(p.PromptHash))
	case !isHex(p.Session, 32):
		return fmt.Errorf("%w: session %q", ErrName, clip(p.Session))
	}
	return nil
}

// session is the directory of the session, without a final slash.
func (p Place) session() string {
	s := "execute/" + p.PromptHash + "/" + p.Session
	if p.Tenant != "" {
		s = "tenants/" + p.Tenant + "/" + s
	}
	return s
}

// EvidencePath is the name of the evidence bundle of a head. The place must be
// valid.
func (p Place) EvidencePath(class Class, head segments.Digest) string {
	return p.session() + "/evidence/" + string(class) + "/" + head.String() + suffix
}

// SnapshotPath is the name of the framed run snapshot of a run id. Place and
// run id must be valid.
func (p Place) SnapshotPath(runID string) string {
	return p.session() + "/" + strings.TrimPrefix(runID, "pr") + ".artifact"
}

func (p Place) legacy(runID string) string  { return p.session() + "/evidence/" + runID + suffix }
func (p Place) pointer(runID string) string { return p.runHeads() + runID + ".head" }
func (p Place) history(runID string) string { return p.runHeads() + runID + "/" }
func (p Place) runHeads() string            { return p.session() + "/evidence/run-heads/" }

const suffix = ".evidence.json"

func (c Class) valid() bool { return c == Heads || c == Unplanned || c == Nonconforming }

func checkRun(p Place, runID string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if !strings.HasPrefix(runID, "pr") || !isHex(runID[2:], 64) {
		return fmt.Errorf("%w: run id %q", ErrName, clip(runID))
	}
	return nil
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

func isTenant(s string) bool {
	if len(s) > 64 || s == "_" {
		return false
	}
	for _, c := range []byte(s) {
		ok := c == '_' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !ok {
			return false
		}
	}
	return true
}
