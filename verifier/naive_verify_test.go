package verifier

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// The second implementation, part three: sections 7 to 11 and 16.

type naiveInputs struct {
	trusted  []string // nil: unpinned
	runID    string
	artifact string // the run snapshot; only texts in its preimage
	prompt   string // storage location, "" unknown
	session  string
}

type naiveVerdict struct {
	decoded          bool
	verify, serve    string // "accept" or the error's name
	seal             string // "" not run
	errors, warnings []Code
}

func naiveJudge(in []byte, o naiveInputs) naiveVerdict {
	tree, err := naiveParse(in)
	d := &naiveDecoder{codes: map[Code]bool{}}
	var bundle naiveRecord
	if err == nil {
		bundle = d.record(tree, naiveBundle)
	}
	if err != nil || d.bad {
		return naiveVerdict{}
	}
	if tree.doubled {
		d.say(CodeDuplicateMember)
	}
	b := naiveChainOf(bundle)
	out := naiveVerdict{decoded: true}
	out.verify = b.verify(o)
	out.serve = b.serve(o)
	if o.runID != "" && o.artifact != "" {
		out.seal = b.serve(o)
		if out.seal == "accept" {
			out.seal = b.seal(o)
		}
	}
	warnings := map[Code]bool{}
	b.strict(o, d.codes, warnings)
	out.errors, out.warnings = naiveSorted(d.codes), naiveSorted(warnings)
	return out
}

func naiveSorted(set map[Code]bool) []Code {
	list := []Code{}
	for c := range set {
		list = append(list, c)
	}
	slices.Sort(list)
	return list
}

type naiveChain struct {
	scope, signature, anchors naiveRecord
	segments                  []naiveRecord
	head                      string // declared
}

func naiveChainOf(b naiveRecord) *naiveChain {
	chain := b["chain"].(naiveRecord)
	c := &naiveChain{scope: b["scope"].(naiveRecord), segments: chain["segments"].([]naiveRecord)}
	c.head, _ = chain["head"].(string)
	c.signature, _ = b["signature"].(naiveRecord)
	c.anchors, _ = b["anchors"].(naiveRecord)
	return c
}

// naiveJCS writes a value as JSON in any form and lets the library make it
// canonical.
func naiveJCS(v any) []byte {
	out, err := jcs.Transform([]byte(naiveWrite(v)))
	if err != nil {
		panic(err)
	}
	return out
}

func naiveWrite(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case uint64:
		return strconv.FormatUint(v, 10)
	case string:
		var b strings.Builder
		for _, r := range v {
			if r < 0x20 || r == '"' || r == '\\' {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
		return `"` + b.String() + `"`
	case []string:
		parts := []string{}
		for _, s := range v {
			parts = append(parts, naiveWrite(s))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case naiveRecord:
		parts := []string{}
		for name, item := range v {
			parts = append(parts, naiveWrite(name)+":"+naiveWrite(item))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	panic(fmt.Sprintf("%T", v))
}

func naiveHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (c *naiveChain) walk() (head, failure string) {
	var expected any
	for _, s := range c.segments {
		prev := s["prev"]
		if prev != expected {
			return "", "BrokenPrevLink"
		}
		head = naiveHash(naiveJCS(naiveRecord{"schema_version": uint64(2), "seq": s["seq"], "prev": prev, "kind": s["kind"]}))
		expected = head
	}
	if head == "" {
		return "", "EmptyChain"
	}
	return head, "accept"
}

func (c *naiveChain) verify(o naiveInputs) string {
	head, failure := c.walk()
	switch {
	case failure != "accept":
		return failure
	case c.head != "" && c.head != head:
		return "HeadMismatch"
	case c.signature != nil && o.trusted != nil && !c.listed(o):
		return "SignatureInvalid"
	case c.signature != nil && !c.signed(head):
		return "SignatureInvalid"
	}
	return "accept"
}

func (c *naiveChain) listed(o naiveInputs) bool {
	return slices.Contains(o.trusted, strings.ToLower(strings.TrimSpace(c.signature["public_key_hex"].(string))))
}

// signed checks the equation over the declared head, else the computed one.
func (c *naiveChain) signed(computed string) bool {
	head := c.head
	if head == "" {
		head = computed
	}
	key, err1 := hex.DecodeString(strings.TrimSpace(c.signature["public_key_hex"].(string)))
	sig, err2 := hex.DecodeString(strings.TrimSpace(c.signature["signature_hex"].(string)))
	if head == "" || err1 != nil || err2 != nil || len(key) != 32 || len(sig) != 64 {
		return false
	}
	scope := naiveRecord{}
	for name, v := range c.scope {
		scope[name] = v
	}
	if scope["tenant_id"] == "" {
		delete(scope, "tenant_id")
	}
	message := naiveJCS(naiveRecord{"schema_version": uint64(2), "scope": scope, "chain_head": head})
	return ed25519.Verify(key, message, sig)
}

func (c *naiveChain) kinds(tag string) []naiveRecord {
	var list []naiveRecord
	for _, s := range c.segments {
		if kind := s["kind"].(naiveRecord); kind["kind"] == tag {
			list = append(list, kind)
		}
	}
	return list
}

func (c *naiveChain) steps() []string {
	var ids []string
	for _, k := range c.kinds("step_executed") {
		ids = append(ids, k["step_id"].(string))
	}
	return ids
}

func naiveSubsequence(topo, ids []string) bool {
	for _, id := range ids {
		i := slices.Index(topo, id)
		if i < 0 {
			return false
		}
		topo = topo[i+1:]
	}
	return true
}

func (c *naiveChain) serve(o naiveInputs) string {
	if failure := c.verify(o); failure != "accept" {
		return failure
	}
	comps := c.kinds("comp_committed")
	switch {
	case len(comps) == 0:
		return "MissingCompCommitted"
	case !naiveSubsequence(comps[0]["step_topo"].([]string), c.steps()):
		return "StepTopoMismatch"
	}
	return "accept"
}

// seal recomputes 9.4. The snapshots used hold texts only, for which sorted
// serde JSON and JCS are the same bytes.
func (c *naiveChain) seal(o naiveInputs) string {
	tree, err := naiveParse([]byte(o.artifact))
	if err != nil {
		panic(err)
	}
	doc := map[string]naiveValue{}
	for i, name := range tree.names {
		doc[name] = tree.items[i]
	}
	lines, prints := []string{}, []string{}
	for _, v := range doc["display_lines"].items {
		lines = append(lines, v.text)
	}
	for _, v := range doc["request_fingerprints"].items {
		prints = append(prints, v.text)
	}
	sort.Strings(prints)
	digest := naiveHash(naiveJCS(naiveRecord{
		"schema_version": uint64(1), "catalog_cgs_hash": c.scope["catalog_cgs_hash"], "domain_revision": c.scope["domain_revision"],
		"entry_id": doc["entry_id"].text, "source_line": strings.TrimSpace(strings.Join(lines, "\n")),
		"parsed": naiveTree(doc["parsed_preimage"]), "request_fingerprints": prints,
	}))
	for _, k := range c.kinds("run_sealed") {
		if k["run_id"] == o.runID {
			if k["run_bundle_digest"] == digest {
				return "accept"
			}
			break
		}
	}
	return "RunSealMismatch"
}

func naiveTree(v naiveValue) any {
	switch v.kind {
	case 's':
		return v.text
	case '0':
		return nil
	case 'a':
		list := []string{}
		for _, item := range v.items {
			list = append(list, item.text)
		}
		return list
	case 'o':
		out := naiveRecord{}
		for i, name := range v.names {
			out[name] = naiveTree(v.items[i])
		}
		return out
	}
	panic("the snapshots used hold texts only")
}

var naiveWeak = []string{
	"0100000000000000000000000000000000000000000000000000000000000000", "0100000000000000000000000000000000000000000000000000000000000080",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"0000000000000000000000000000000000000000000000000000000000000000", "0000000000000000000000000000000000000000000000000000000000000080",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
}

func (c *naiveChain) strict(o naiveInputs, errs, warns map[Code]bool) {
	head, failure := c.walk()
	errs[CodeBrokenPrev] = failure == "BrokenPrevLink"
	errs[CodeEmptyChain] = failure == "EmptyChain"
	errs[CodeHeadMismatch] = head != "" && c.head != "" && c.head != head
	errs[CodeHeadMissing] = len(c.segments) > 0 && c.head == ""
	errs[CodeScopeVersion] = c.scope["schema_version"] != uint64(1)
	errs[CodeScopeMismatch] = o.prompt != "" && (c.scope["prompt_hash"] != o.prompt || c.scope["execute_session_id"] != o.session)
	c.order(errs, warns)
	c.plans(errs, warns)
	c.seals(o, errs, warns)
	warns[CodeAnchors] = len(c.anchors) > 0
	c.signing(o, head, errs, warns)
	for _, set := range []map[Code]bool{errs, warns} {
		for code, said := range set {
			if !said {
				delete(set, code)
			}
		}
	}
}

func (c *naiveChain) order(errs, warns map[Code]bool) {
	rank, last := 0, uint64(0)
	for i, s := range c.segments {
		if s["seq"] != uint64(i) {
			errs[CodeSeqGap] = true
		}
		now := slices.Index([]string{"", "intent_bound", "comp_committed", "step_executed", "run_sealed"}, s["kind"].(naiveRecord)["kind"].(string))
		if now < rank || now == 1 && i > 0 {
			errs[CodeKindOrder] = true
		}
		rank = now
		if at, given := s["emitted_at_ms"].(uint64); given {
			if at < last {
				warns[CodeClockRegression] = true
			}
			last = at
		}
	}
}

func (c *naiveChain) plans(errs, warns map[Code]bool) {
	comps := c.kinds("comp_committed")
	errs[CodeCompMissing] = len(comps) == 0
	for i, k := range comps {
		if k["plan_commit_id_hex"] != k["comp_semantic_sha256"] {
			errs[CodePlanIDMismatch] = true
		}
		topo := k["step_topo"].([]string)
		if (i == 0 || i == len(comps)-1) && !naiveSubsequence(topo, c.steps()) {
			errs[CodeTopoMismatch] = true
		}
		for _, id := range topo {
			if i == len(comps)-1 && !slices.Contains(c.steps(), id) {
				warns[CodeStepsMissing] = true
			}
		}
	}
}

func (c *naiveChain) seals(o naiveInputs, errs, warns map[Code]bool) {
	seals := c.kinds("run_sealed")
	warns[CodeUnsealed] = len(seals) == 0
	found, holds := false, false
	for _, k := range seals {
		if k["run_id"] != "pr"+k["run_bundle_digest"].(string) {
			errs[CodeRunIDMismatch] = true
		}
		if !found && k["run_id"] == o.runID {
			found, holds = true, k["run_id"] == "pr"+k["run_bundle_digest"].(string)
		}
	}
	if o.runID == "" {
		return
	}
	errs[CodeRunNotSealed] = !found
	warns[CodeArtifactAbsent] = o.artifact == ""
	errs[CodeRunSealMismatch] = found && o.artifact != "" && c.seal(o) != "accept"
	if found && o.artifact != "" && c.seal(o) == "accept" && holds {
		tree, _ := naiveParse([]byte(o.artifact))
		for i, name := range tree.names {
			says := tree.items[i].text
			if says != "" && (name == "run_id" && says != o.runID || name == "prompt_hash" && says != c.scope["prompt_hash"]) {
				warns[CodeArtifactOther] = true
			}
		}
	}
}

func (c *naiveChain) signing(o naiveInputs, head string, errs, warns map[Code]bool) {
	if c.signature == nil {
		errs[CodeSignatureNeeded] = o.trusted != nil
		warns[CodeUnsigned] = o.trusted == nil
		return
	}
	key := strings.ToLower(strings.TrimSpace(c.signature["public_key_hex"].(string)))
	weak := slices.Contains(naiveWeak, key)
	low := strings.HasPrefix(key, "e") || strings.HasPrefix(key, "f") // y from p on: ed…, ee…, ef…, f?…, then all f
	if low && len(key) == 64 && strings.Trim(key[2:62], "f") == "" && (key[62] == '7' || key[62] == 'f') && key[63] == 'f' && key[:2] >= "ed" && naiveHex64.MatchString(key) {
		weak = true
	}
	errs[CodeWeakPublicKey] = weak
	errs[CodeSignatureInvalid] = !c.signed(head)
	if r := strings.TrimSpace(c.signature["signature_hex"].(string)); !weak && len(r) == 128 && slices.Contains(naiveWeak, strings.ToLower(r[:64])) {
		errs[CodeSignatureInvalid] = true
	}
	errs[CodeUntrustedKey] = o.trusted != nil && !weak && !c.listed(o)
}
