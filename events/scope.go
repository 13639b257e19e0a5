package events

import (
	"strings"

	"github.com/chaind/chaind/segments"
)

// Required members of a scope.
const (
	scopeVersion = 1 << iota
	scopePrompt
	scopeSession
	scopeCatalog
	scopeRevision
	scopeEntry
	scopeRequired = 1<<iota - 1
)

func (p *parser) scope() *segments.Scope {
	if !p.object("scope") {
		return nil
	}
	s, seen := &segments.Scope{}, 0
	for p.next() {
		seen |= p.scopeMember(s)
	}
	if seen != scopeRequired {
		p.verdict.add(rankShape, "scope lacks a member")
	}
	return s
}

func (p *parser) scopeMember(s *segments.Scope) int {
	switch string(p.name) {
	case "schema_version":
		n, ok := p.integer("scope.schema_version", 1<<32-1)
		if ok && n != segments.ScopeSchemaVersion {
			p.verdict.add(rankShape, "scope.schema_version is not 1")
		}
		s.SchemaVersion = uint32(n)
		return scopeVersion
	case "tenant_id":
		s.TenantID, _ = p.string("scope.tenant_id")
	case "logical_session_id":
		s.LogicalSessionID = p.optional("scope.logical_session_id")
	case "prompt_hash":
		s.PromptHash, _ = p.string("scope.prompt_hash")
		return scopePrompt
	case "execute_session_id":
		s.ExecuteSessionID, _ = p.string("scope.execute_session_id")
		return scopeSession
	case "catalog_cgs_hash":
		s.CatalogCGSHash, _ = p.string("scope.catalog_cgs_hash")
		return scopeCatalog
	case "domain_revision":
		n, _ := p.integer("scope.domain_revision", 1<<32-1)
		s.DomainRevision = uint32(n)
		return scopeRevision
	case "entry_id":
		s.EntryID, _ = p.string("scope.entry_id")
		return scopeEntry
	default:
		p.unknown("scope")
	}
	return 0
}

// checkScope compares what the scope and the subject both say.
func (p *parser) checkScope(e *Event) {
	if e.Scope == nil || p.verdict.rank < rankScope {
		return
	}
	s, k := e.Scope, e.Key
	if s.TenantID != k.Tenant || s.PromptHash != k.PromptHash || s.ExecuteSessionID != k.Session {
		p.verdict.add(rankScope, "tenant, prompt hash or session of the scope differ from the subject")
	}
}

func sameScope(a, b *segments.Scope) bool {
	if (a.LogicalSessionID == nil) != (b.LogicalSessionID == nil) ||
		a.LogicalSessionID != nil && *a.LogicalSessionID != *b.LogicalSessionID {
		return false
	}
	x, y := *a, *b
	x.LogicalSessionID, y.LogicalSessionID = nil, nil
	return x == y
}

// cloneScope copies the scope out of the payload's strings. What the key says too is
// the key's, and the rest lies together: a daemon keeps the scope of each open chain.
func cloneScope(s *segments.Scope, key *Key) *segments.Scope {
	c := *s
	c.TenantID, c.PromptHash, c.ExecuteSessionID = cloneUnless(s.TenantID, key.Tenant), cloneUnless(s.PromptHash, key.PromptHash), cloneUnless(s.ExecuteSessionID, key.Session)
	own := strings.Join([]string{s.CatalogCGSHash, s.EntryID}, "") // + would give one of them as it is where the other is ""
	c.CatalogCGSHash, c.EntryID = own[:len(s.CatalogCGSHash)], own[len(s.CatalogCGSHash):]
	c.LogicalSessionID = cloneOptional(s.LogicalSessionID)
	return &c
}

// cloneUnless is a copy of s, or kept where that says the same.
func cloneUnless(s, kept string) string {
	if s == kept {
		return kept
	}
	return clone(s)
}
