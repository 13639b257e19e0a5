package events

import "strings"

// First tokens of the subjects that the event format uses.
const (
	SubjectRoot  = "evidence"
	ReceiptRoot  = "evidence-receipts"
	RejectedRoot = "evidence-rejected"

	// UnattributedSubject takes rejected messages whose chain cannot be told.
	// Its second token lies outside the tenants' alphabet.
	UnattributedSubject = RejectedRoot + ".~unattributed"

	foreignVerb = "~"
)

// ParseSubject reads evidence.{tenant}.{prompt_hash}.{session}.{chain}.{verb}.
// The fault is nil or bad_subject. With a bad token the message belongs to no
// chain (attributed is false and the key is zero); with an unknown verb alone
// the chain is known, and the verb is returned as it stands.
func ParseSubject(subject string) (key Key, verb Verb, attributed bool, fault *Fault) {
	rest, ok := strings.CutPrefix(subject, SubjectRoot+".")
	if !ok {
		return Key{}, "", false, &Fault{BadSubject, "the subject does not begin with evidence."}
	}
	var tokens [5]string
	for i := range 4 {
		if tokens[i], rest, ok = strings.Cut(rest, "."); !ok {
			return Key{}, "", false, &Fault{BadSubject, "the subject has fewer than six tokens"}
		}
	}
	tokens[4] = rest
	key = Key{Tenant: tokens[0], PromptHash: tokens[1], Session: tokens[2], Chain: tokens[3]}
	if !isToken(key.Tenant) { // no token spells the empty tenant but "_"
		return Key{}, "", false, &Fault{BadSubject, (&BadTokenError{"tenant"}).Error()}
	}
	if key.Tenant == "_" {
		key.Tenant = ""
	}
	if err := key.Validate(); err != nil {
		return Key{}, "", false, &Fault{BadSubject, err.Error()}
	}
	verb = Verb(tokens[4])
	if !verb.known() {
		return key, verb, true, &Fault{BadSubject, "the verb is not intent, commit, step or seal"}
	}
	return key, verb, true, nil
}

// BadTokenError says which part of a key cannot stand in a subject.
type BadTokenError struct{ Part string }

func (e *BadTokenError) Error() string {
	return "the " + e.Part + " token is outside its alphabet or length"
}

// Validate reports a *BadTokenError for the first part that cannot stand in a
// subject: tenant (may be empty) and chain are 1 to 64 of [A-Za-z0-9_-], the
// prompt hash is 64 and the session 32 lower-case hexadecimal digits. The
// tenant "_" is refused: that token spells the empty tenant.
func (k Key) Validate() error {
	switch {
	case k.Tenant == "_" || k.Tenant != "" && !isToken(k.Tenant):
		return &BadTokenError{"tenant"}
	case !isLowerHex(k.PromptHash, 64):
		return &BadTokenError{"prompt hash"}
	case !isLowerHex(k.Session, 32):
		return &BadTokenError{"session"}
	case !isToken(k.Chain):
		return &BadTokenError{"chain"}
	}
	return nil
}

// Subject is the subject of an event of the chain.
func (k Key) Subject(v Verb) string { return SubjectRoot + "." + k.tokens() + "." + string(v) }

// ReceiptSubject is the subject of the chain's receipts; it has no verb.
func (k Key) ReceiptSubject() string { return ReceiptRoot + "." + k.tokens() }

// RejectedSubject is the subject under which a rejected message is published
// again: the same tokens behind evidence-rejected. A verb that is no token of
// ours becomes "~", and a message of no chain goes to [UnattributedSubject].
func RejectedSubject(subject string) string {
	key, verb, attributed, _ := ParseSubject(subject)
	if !attributed {
		return UnattributedSubject
	}
	if !isToken(string(verb)) {
		verb = foreignVerb
	}
	return RejectedRoot + "." + key.tokens() + "." + string(verb)
}

// TenantToken is the tenant as subjects and listings spell it.
func (k Key) TenantToken() string {
	if k.Tenant == "" {
		return "_"
	}
	return k.Tenant
}

func (k Key) tokens() string {
	return k.TenantToken() + "." + k.PromptHash + "." + k.Session + "." + k.Chain
}

func (v Verb) known() bool {
	return v == VerbIntent || v == VerbCommit || v == VerbStep || v == VerbSeal
}

func isToken(s string) bool {
	return 0 < len(s) && len(s) <= maxTokenBytes && allBytes(s, isTokenByte)
}

// ValidEventID reports whether s is 1 to 128 of [A-Za-z0-9_.:-].
func ValidEventID(s string) bool {
	return 0 < len(s) && len(s) <= maxEventIDBytes && allBytes(s, isIDByte)
}

func isLowerHex(s string, n int) bool { return len(s) == n && allBytes(s, isHexByte) }

func allBytes(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isHexByte(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func isIDByte(c byte) bool { return isTokenByte(c) || c == '.' || c == ':' }
