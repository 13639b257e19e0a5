package server

import (
	"strings"
)

// emptyTenant spells the empty tenant where a path needs a segment.
const emptyTenant = "_"

// isHex tells whether s is n hex digits of either case.
func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// foldHex reads a path parameter of n hex digits and folds it to lower case
// (Plasm evidence format, section 15, step 1).
func foldHex(name, s string, n int) (string, error) {
	if !isHex(s, n) {
		return "", invalidPath(name, hexRule(n))
	}
	return strings.ToLower(s), nil
}

func hexRule(n int) string {
	if n == 32 {
		return "expected 32 hex digits"
	}
	return "expected 64 hex digits"
}

// foldRunID trims a run id and folds its digits; the prefix has one spelling.
func foldRunID(s string) (string, error) {
	s = strings.TrimSpace(s)
	digits, ok := strings.CutPrefix(s, "pr")
	if !ok || !isHex(digits, 64) {
		return "", invalidPath("run_id", "expected pr and 64 hex digits")
	}
	return "pr" + strings.ToLower(digits), nil
}

// isToken tells whether s may be a tenant or a chain: 1 to 64 letters, digits,
// hyphens and underscores.
func isToken(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
}

// pathTenant reads a tenant segment; "_" is the empty tenant.
func pathTenant(s string) (string, error) {
	if !isToken(s) {
		return "", invalidPath("tenant", "expected 1 to 64 letters, digits, hyphens or underscores")
	}
	return parseTenant(s), nil
}

func parseTenant(s string) string {
	if s == emptyTenant {
		return ""
	}
	return s
}

func tenantSegment(tenant string) string {
	if tenant == "" {
		return emptyTenant
	}
	return tenant
}
