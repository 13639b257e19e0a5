package segments

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// These errors are wrapped by [Segment.Check] and [Scope.Check].
var (
	ErrUnsafeInteger = errors.New("integer above 2^53-1")
	ErrInvalidUTF8   = errors.New("string is not UTF-8")
)

// Check finds what an emitter must not write though the encoders would:
// integers above [MaxSafeInteger], whose digests collide, and strings that are
// not UTF-8, which make the file unreadable.
func (s *Segment) Check() error {
	if s.Seq > MaxSafeInteger {
		return fmt.Errorf("check seq: %w", ErrUnsafeInteger)
	}
	if s.EmittedAtMS != nil && *s.EmittedAtMS > MaxSafeInteger {
		return fmt.Errorf("check emitted_at_ms: %w", ErrUnsafeInteger)
	}
	return CheckKind(s.Kind)
}

// CheckKind is [Segment.Check] of the kind alone.
func CheckKind(k Kind) error {
	switch k := k.(type) {
	case *CompCommitted:
		return checkUTF8(append([]string{k.PlanCommitIDHex}, k.StepTopo...)...)
	case *StepExecuted:
		list := append([]string{k.StepID, k.SourceLine, orEmpty(k.EntryID)}, k.RequestFingerprints...)
		return checkUTF8(list...)
	case *RunSealed:
		if k.ResourceIndex != nil && *k.ResourceIndex > MaxSafeInteger {
			return fmt.Errorf("check resource_index: %w", ErrUnsafeInteger)
		}
		return checkUTF8(k.RunID, orEmpty(k.StepID))
	}
	return nil
}

// Check finds strings that are not UTF-8.
func (s *Scope) Check() error {
	return checkUTF8(s.TenantID, orEmpty(s.LogicalSessionID), s.PromptHash, s.ExecuteSessionID, s.CatalogCGSHash, s.EntryID)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func checkUTF8(list ...string) error {
	for _, s := range list {
		if !utf8.ValidString(s) {
			return fmt.Errorf("check %.40q: %w", s, ErrInvalidUTF8)
		}
	}
	return nil
}
