package events

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// step wraps raw JSON members into an otherwise honest step.
func step(members string) string {
	return `{"v":1,"event_id":"e1","kind":{"kind":"step_executed","step_id":"a","step_index":0,"request_fingerprints":[],"source_line":"x","parsed_expr_digest":"` +
		strings.Repeat("0", 64) + `"}` + members + `}`
}

func parsed(value string) string { return step(`,"preimage":{"parsed":` + value + `}`) }

func TestMustReject(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := manyMembers
	for _, c := range []struct {
		name    string
		verb    Verb
		payload string
		class   Class
	}{
		{"J01 reversed surrogates", VerbStep, parsed(`"\ude00\ud83d"`), Malformed},
		{"J01 two high surrogates", VerbStep, parsed(`"\ud83d\ud83d"`), Malformed},
		{"J01 lone surrogate in a name", VerbStep, parsed(`{"\ud83d":1}`), Malformed},
		{"J03 ff", VerbStep, parsed("\"\xff\""), Malformed},
		{"J03 overlong", VerbStep, parsed("\"\xc0\xaf\""), Malformed},
		{"J03 surrogate as UTF-8", VerbStep, parsed("\"\xed\xa0\x80\""), Malformed},
		{"J05 negative zero as index", VerbStep, `{"v":1,"event_id":"e","producer_seq":-0}`, Malformed},
		{"J05 -0.0 as index", VerbStep, `{"v":1,"event_id":"e","producer_seq":-0.0}`, Malformed},
		{"J07 overflow", VerbStep, parsed(`{"n":1e400}`), Malformed},
		{"J07 overflow without exponent", VerbStep, parsed(`1` + strings.Repeat("0", 400)), Malformed},
		{"J07 underflow", VerbStep, parsed(`{"n":-1e-400}`), Malformed},
		{"J09 duplicate", VerbStep, `{"kind":"intent","kind":"seal"}`, DuplicateName},
		{"J09 duplicate through escapes", VerbStep, parsed(`{"a":1,"\u0061":2}`), DuplicateName},
		{"J09 duplicate in an array's object", VerbStep, parsed(`[[{"":1,"":2}]]`), DuplicateName},
		{"J09 duplicate in scope", VerbStep, step(`,"scope":{"entry_id":"a","entry_id":"a"}`), DuplicateName},
		{"J11 hex", VerbStep, parsed(`[0x1p4]`), Malformed},
		{"J11 leading zero", VerbStep, parsed(`[01]`), Malformed},
		{"J11 plus", VerbStep, parsed(`[+1]`), Malformed},
		{"J11 no integer part", VerbStep, parsed(`[.5]`), Malformed},
		{"J11 no fraction", VerbStep, parsed(`[5.]`), Malformed},
		{"J11 separator", VerbStep, parsed(`[1_000]`), Malformed},
		{"J15 80,000 members", VerbStep, parsed(many(80000)), TooLarge},
		{"J15 4,097 members", VerbStep, parsed(many(4097)), TooLarge},
		{"J15 4,097 members, unclosed", VerbStep, strings.TrimSuffix(parsed(many(4097)), "}"), Malformed},
		{"J09 duplicate among many", VerbStep, parsed(many(100)[:len(many(100))-1] + `,"k00\u0030007":1}`), DuplicateName},
		{"J17 prototype names", VerbStep, step(`,"__proto__":{"status":"approved"},"constructor":1,"toString":2`), UnknownMember},
		{"J21 null for a member", VerbStep, step(`,"producer_seq":null`), Malformed},
		{"J21 null anchors", VerbStep, step(`,"anchors":null`), Malformed},
		{"J21 newer member", VerbStep, step(`,"x_new":1`), UnknownMember},
		{"J23 string", VerbStep, `"x"`, Malformed},
		{"J23 number", VerbStep, `7`, Malformed},
		{"J23 null", VerbStep, `null`, Malformed},
		{"J23 array", VerbStep, `[]`, Malformed},
		{"J23 empty", VerbStep, ``, Malformed},
		{"J23 blank", VerbStep, " \n", Malformed},
		{"N06 empty id", VerbStep, `{"v":1,"event_id":""}`, BadID},
		{"N06 no id", VerbStep, `{"v":1}`, BadID},
		{"N06 long id", VerbStep, `{"v":1,"event_id":"` + strings.Repeat("a", 129) + `"}`, BadID},
		{"B13 long run id", VerbSeal, `{"v":1,"event_id":"e","kind":{"kind":"run_sealed","run_id":"` + strings.Repeat("r", 40000) + `","run_bundle_digest":"` + strings.Repeat("0", 64) + `"}}`, RunIDMismatch},
		{"B13 empty run id", VerbSeal, `{"v":1,"event_id":"e","kind":{"kind":"run_sealed","run_id":"","run_bundle_digest":"` + strings.Repeat("0", 64) + `"}}`, RunIDMismatch},
		{"F01 traversal in a run id", VerbSeal, `{"v":1,"event_id":"e","kind":{"kind":"run_sealed","run_id":"../../etc/cron.d/x","run_bundle_digest":"` + strings.Repeat("0", 64) + `"}}`, RunIDMismatch},
		{"F01 traversal in an event id", VerbStep, `{"v":1,"event_id":"../x"}`, BadID},
		{"level 65", VerbStep, parsed(deep(63)), TooDeep},
		{"level 20,000", VerbStep, parsed(deep(20000)), TooDeep},
		{"too deep, unclosed", VerbStep, parsed(strings.Repeat("[", 70)), Malformed},
		{"too deep, no object", VerbStep, deep(70), Malformed},
		{"plan id differs", VerbCommit, `{"v":1,"event_id":"e","kind":{"kind":"comp_committed","plan_commit_id_hex":"` + strings.Repeat("1", 64) + `","comp_semantic_sha256":"` + strings.Repeat("0", 64) + `","step_topo":[]}}`, DigestMismatch},
		{"comp without topology", VerbCommit, `{"v":1,"event_id":"e","kind":{"kind":"comp_committed","step_topo":[]},"preimage":{"comp":{"version":2}}}`, TopoMismatch},
		{"digest missing", VerbIntent, `{"v":1,"event_id":"e","kind":{"kind":"intent_bound","intent_len":1}}`, Malformed},
		{"plan id missing", VerbCommit, `{"v":1,"event_id":"e","kind":{"kind":"comp_committed","comp_semantic_sha256":"` + strings.Repeat("0", 64) + `","step_topo":[]}}`, Malformed},
		{"more without a run seal", VerbSeal, `{"v":1,"event_id":"e","more":true}`, Malformed},
		{"preimage without kind", VerbSeal, `{"v":1,"event_id":"e","preimage":{"artifact":` + testArtifact + `}}`, Malformed},
		{"artifact that is no snapshot", VerbSeal, `{"v":1,"event_id":"e","kind":{"kind":"run_sealed","run_id":"pr"},"preimage":{"artifact":{"entry_id":"x"}}}`, Malformed},
		{"signature without head", VerbSeal, `{"v":1,"event_id":"e","producer_signature":{"public_key_hex":"","signature_hex":""}}`, Malformed},
		{"scope of another version", VerbStep, step(`,"scope":` + strings.Replace(testScope, `"schema_version":1`, `"schema_version":2`, 1)), Malformed},
		{"scope of another tenant", VerbStep, step(`,"scope":` + strings.Replace(testScope, `acme`, `umbrella`, 1)), ScopeContradiction},
		{"unsafe integer in an unknown member", VerbStep, step(`,"x":[{"y":-9007199254740992}]`), UnsafeInteger},
		{"unknown anchor", VerbStep, step(`,"anchors":{"x":1}`), UnknownMember},
		{"member of another kind", VerbStep, `{"v":1,"event_id":"e","kind":{"kind":"step_executed","intent_len":1}}`, UnknownMember},
		{"upper-case digest", VerbStep, strings.Replace(step(``), strings.Repeat("0", 64), strings.Repeat("A", 64), 1), Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			e := Decode(message(c.verb, c.payload), DefaultLimits)
			if e.Fault == nil || e.Fault.Class != c.class {
				t.Errorf("%+v, want %s", e.Fault, c.class)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("took %v", took)
			}
			if e.Fault != nil && strings.ContainsFunc(e.Fault.Detail, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("the detail has raw bytes: %q", e.Fault.Detail)
			}
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%06d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestMustAccept(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"J13 separators and HTML":      parsedRight(`{"t":"<a>&\u2028` + "\u007f\u2028" + `"}`),
		"J05 negative zero, preimage":  parsedRight(`[-0,-0.0,-0e5]`),
		"unsafe integer, preimage":     parsedRight(`18446744073709551616`),
		"smallest and largest numbers": parsedRight(`[5e-324,1.7976931348623157e308,0e-999,0.0e999]`),
		"level 64":                     parsedRight(strings.Repeat("[", 62) + strings.Repeat("]", 62)),
		"4,096 members of strings":     parsedRight(`["` + strings.Repeat(":{[", 5000) + `"]`),
		"4,096 members":                parsedRight(manyMembers(4096)),
		"one name in many objects":     parsedRight(`[` + strings.Repeat(`{"a":{"a":1}},`, 40) + `{"a":1}]`),
		"white space around":           " \r\n\t" + parsedRight(`null`) + "\n",
		"escaped names and values":     strings.Replace(parsedRight(`1`), `"event_id":"e1"`, `"\u0065vent_id":"\u00651"`, 1),
		"largest safe integers":        strings.Replace(parsedRight(`1`), `"v":1`, `"v":1,"at_ms":9007199254740991,"producer_seq":9007199254740991`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e := Decode(message(VerbStep, payload), DefaultLimits); e.Fault != nil || e.ID != "e1" {
				t.Errorf("id %q, %+v", e.ID, e.Fault)
			}
		})
	}
}

// parsedRight leaves the digest to the preimage.
func parsedRight(value string) string {
	return strings.Replace(parsed(value), `,"parsed_expr_digest":"`+strings.Repeat("0", 64)+`"`, "", 1)
}

// J21: null, absent, empty and zero are four events with four digests.
func TestAbsenceCounts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, value := range []string{`{"a":null}`, `{}`, `{"a":""}`, `{"a":0}`} {
		e := Decode(message(VerbStep, parsedRight(value)), DefaultLimits)
		if e.Fault != nil {
			t.Fatal(e.Fault)
		}
		seen[e.Sum.String()+string(e.Preimage.Parsed)] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d different events of 4", len(seen))
	}
}

// fault is one thing that can be put into an event.
type fault struct {
	class Class
	at    string // rank, for the name of the test
}

// TestPrecedence puts every two faults into one event: the one that stands
// first in the contract's order counts.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	for _, verb := range []Verb{VerbCommit, VerbSeal} {
		last := fault{TopoMismatch, "topology"}
		if verb == VerbSeal {
			last = fault{RunIDMismatch, "run id"}
		}
		order := []fault{
			{BadSubject, "subject"}, {TooLarge, "size"}, {Malformed, "text"}, {TooDeep, "depth"},
			{DuplicateName, "duplicate"}, {BadID, "id"}, {UnsafeInteger, "integer"}, {UnknownMember, "unknown"},
			{Malformed, "shape"}, {Conflict, "conflict"}, {ScopeContradiction, "scope"}, {DigestMismatch, "digest"}, last,
		}
		for i, a := range order {
			for _, b := range order[i+1:] {
				t.Run(fmt.Sprintf("%s/%s before %s", verb, a.at, b.at), func(t *testing.T) {
					t.Parallel()
					if got := verdictOf(t, verb, a.at, b.at); got == nil || got.Class != a.class {
						t.Errorf("%+v, want %s", got, a.class)
					}
				})
			}
		}
		if got := verdictOf(t, verb); got != nil {
			t.Errorf("%s without a fault: %+v", verb, got)
		}
	}
}

// verdictOf delivers an event with the named faults to a bound chain.
func verdictOf(t *testing.T, verb Verb, faults ...string) *Fault {
	t.Helper()
	has := func(name string) bool {
		for _, f := range faults {
			if f == name {
				return true
			}
		}
		return false
	}
	pick := func(name, faulty, sound string) string {
		if has(name) {
			return faulty
		}
		return sound
	}
	inside := pick("depth", `,"deep":`+strings.Repeat("[", 70)+strings.Repeat("]", 70), "") +
		pick("duplicate", `,"x":1,"x":1`, "")
	id, head := "e9", ""
	if has("conflict") {
		id = "e1"
	}
	kind := commitKind(t, pick, inside)
	if verb == VerbSeal {
		kind = sealKind(t, pick, inside)
	}
	head = fmt.Sprintf(`{"v":%s,"event_id":"%s","at_ms":%s%s,"scope":%s,%s}%s`,
		pick("shape", "2", "1"), pick("id", "?", id), pick("integer", "9007199254740993", "5"),
		pick("unknown", `,"zzz":1`, ""), pick("scope", strings.Replace(testScope, "cafe", "beef", 1), testScope),
		kind, pick("text", "x", "")+pick("size", strings.Repeat(" ", 5000), ""))
	m := message(verb, head)
	m.Subject = testKey.Subject(verb) + pick("subject", "s", "")
	store := newMemory(Limits{MaxBytes: 4000})
	if _, effect := store.deliver(honest(t)[0]); effect.Verdict != Appended {
		t.Fatal(effect.Fault)
	}
	_, effect := store.deliver(m)
	return effect.Fault
}

func commitKind(t *testing.T, pick func(string, string, string) string, inside string) string {
	t.Helper()
	plan := Decode(honest(t)[1], DefaultLimits).Kind
	digest := planOf(plan)
	return fmt.Sprintf(`"kind":{"kind":"comp_committed","plan_commit_id_hex":"%[1]s","comp_semantic_sha256":"%[1]s","step_topo":["a","%s"]},"preimage":{"comp":%s%s}}`,
		pick("digest", strings.Repeat("1", 64), digest), pick("topology", "c", "b"), testComp[:len(testComp)-1], inside)
}

func sealKind(t *testing.T, pick func(string, string, string) string, inside string) string {
	t.Helper()
	run := testRunDigest(t).String()
	return fmt.Sprintf(`"kind":{"kind":"run_sealed","run_id":"%s","run_bundle_digest":"%s"},"preimage":{"artifact":%s%s}}`,
		"pr"+pick("run id", strings.Repeat("2", 64), run), pick("digest", strings.Repeat("1", 64), run), testArtifact[:len(testArtifact)-1], inside)
}
