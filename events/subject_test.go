package events

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSubjectRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := Key{
			Tenant:     rapid.StringMatching(`([A-Za-z0-9_-]{1,64})?`).Filter(func(s string) bool { return s != "_" }).Draw(t, "tenant"),
			PromptHash: rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "prompt hash"),
			Session:    rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "session"),
			Chain:      rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(t, "chain"),
		}
		verb := rapid.SampledFrom([]Verb{VerbIntent, VerbCommit, VerbStep, VerbSeal}).Draw(t, "verb")
		got, gotVerb, attributed, fault := ParseSubject(key.Subject(verb))
		if got != key || gotVerb != verb || !attributed || fault != nil {
			t.Fatalf("%q reads as %+v %s %v %v", key.Subject(verb), got, gotVerb, attributed, fault)
		}
		if err := key.Validate(); err != nil {
			t.Fatal(err)
		}
		if want := "evidence-rejected." + strings.TrimPrefix(key.Subject(verb), "evidence."); RejectedSubject(key.Subject(verb)) != want {
			t.Fatalf("rejected under %q", RejectedSubject(key.Subject(verb)))
		}
		if key.ReceiptSubject()+"."+string(verb) != "evidence-receipts."+strings.TrimPrefix(key.Subject(verb), "evidence.") {
			t.Fatalf("receipts under %q", key.ReceiptSubject())
		}
	})
}

// F01, F05: names that a path or a subject could trip over are no tokens, so
// no two keys ever need the same encoding.
func TestBadSubjects(t *testing.T) {
	t.Parallel()
	good := testKey.Subject(VerbStep)
	for _, c := range []struct {
		name, subject string
		attributed    bool
		rejected      string
	}{
		{"no root", strings.Replace(good, "evidence.", "other.", 1), false, UnattributedSubject},
		{"empty", "", false, UnattributedSubject},
		{"root alone", "evidence", false, UnattributedSubject},
		{"five tokens", strings.TrimSuffix(good, ".step"), false, UnattributedSubject},
		{"seven tokens", good + ".x", true, ""},
		{"empty tenant token", strings.Replace(good, "acme", "", 1), false, UnattributedSubject},
		{"tenant with a colon", strings.Replace(good, "acme", "a:b", 1), false, UnattributedSubject},
		{"tenant with a slash", strings.Replace(good, "acme", "a/b", 1), false, UnattributedSubject},
		{"tenant of 65", strings.Replace(good, "acme", strings.Repeat("a", 65), 1), false, UnattributedSubject},
		{"wildcard", strings.Replace(good, "acme", "*", 1), false, UnattributedSubject},
		{"upper-case prompt hash", strings.Replace(good, "abab", "ABAB", 1), false, UnattributedSubject},
		{"short session", strings.Replace(good, ".cdcd", ".cd", 1), false, UnattributedSubject},
		{"chain with an umlaut", strings.Replace(good, "01HONEST", "ä", 1), false, UnattributedSubject},
		{"other case of the verb", strings.Replace(good, "step", "Step", 1), true, ""},
		{"unknown verb", strings.Replace(good, ".step", ".finish", 1), true, ""},
		{"verb that is no token", strings.Replace(good, ".step", ".>", 1), true, "~"},
		{"empty verb", strings.Replace(good, ".step", ".", 1), true, "~"},
	} {
		key, _, attributed, fault := ParseSubject(c.subject)
		if fault == nil || fault.Class != BadSubject || attributed != c.attributed || (key == testKey) != attributed {
			t.Errorf("%s: %+v %v %+v", c.name, key, attributed, fault)
		}
		rejected := RejectedSubject(c.subject)
		if c.rejected != "" && !strings.HasSuffix(rejected, c.rejected) {
			t.Errorf("%s: rejected under %q", c.name, rejected)
		}
		if !legal(rejected) || !strings.HasPrefix(rejected, RejectedRoot+".") {
			t.Errorf("%s: %q is no subject to publish on", c.name, rejected)
		}
		if e := Decode(Message{Subject: c.subject, Payload: []byte(`{"v":1,"event_id":"x"}`)}, Limits{}); e.ID != "" || e.Sum.String() == "" {
			t.Errorf("%s: the id was read", c.name)
		}
	}
}

// legal reports a subject that NATS lets a client publish on.
func legal(subject string) bool {
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" || strings.ContainsAny(token, " \t\r\n*>") {
			return false
		}
	}
	return true
}
