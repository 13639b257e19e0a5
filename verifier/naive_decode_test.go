package verifier

import (
	"regexp"
	"strconv"
	"strings"
)

// The second implementation, part two: sections 2, 3 and 5, and the form rules
// of section 16. A decoded record is a map of its members.

type naiveRecord map[string]any

type naiveField struct {
	name string
	need byte // 'r' required, 'o' optional (null is absent), 'd' has a default
	read func(d *naiveDecoder, v naiveValue) any
}

type naiveDecoder struct {
	bad   bool
	codes map[Code]bool
}

func (d *naiveDecoder) say(c Code) { d.codes[c] = true }

var (
	naiveHex64 = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	naiveLower = regexp.MustCompile(`^[0-9a-f]*$`)
	naiveUUID  = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	naiveUUIDs = regexp.MustCompile(`^(?i)([0-9a-f]{32}|(urn:uuid:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\{[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\})$`)
)

func naiveText(d *naiveDecoder, v naiveValue) any {
	d.bad = d.bad || v.kind != 's'
	return v.text
}

func naiveTexts(d *naiveDecoder, v naiveValue) any {
	d.bad = d.bad || v.kind != 'a'
	list := []string{}
	for _, item := range v.items {
		naiveText(d, item)
		list = append(list, item.text)
	}
	return list
}

func naiveInt(bits int) func(*naiveDecoder, naiveValue) any {
	return func(d *naiveDecoder, v naiveValue) any {
		n, err := strconv.ParseUint(v.text, 10, bits)
		d.bad = d.bad || v.kind != 'n' || err != nil
		if n > 1<<53-1 {
			d.say(CodeUnsafeInteger)
		}
		return n
	}
}

func naiveDigest(d *naiveDecoder, v naiveValue) any {
	trimmed := strings.TrimSpace(v.text)
	d.bad = d.bad || v.kind != 's' || !naiveHex64.MatchString(trimmed)
	if trimmed != v.text || !naiveLower.MatchString(v.text) {
		d.say(CodeNoncanonicalHex)
	}
	return strings.ToLower(trimmed)
}

func naiveHexText(n int) func(*naiveDecoder, naiveValue) any {
	return func(d *naiveDecoder, v naiveValue) any {
		if len(v.text) != n || !naiveLower.MatchString(v.text) {
			d.say(CodeNoncanonicalHex)
		}
		return naiveText(d, v)
	}
}

func naiveTrace(d *naiveDecoder, v naiveValue) any {
	d.bad = d.bad || v.kind != 's' || !naiveUUIDs.MatchString(v.text)
	if !naiveUUID.MatchString(v.text) {
		d.say(CodeNoncanonicalUUID)
	}
	return v.text
}

func naiveTenant(d *naiveDecoder, v naiveValue) any {
	if v.kind == 's' && v.text == "" {
		d.say(CodeEmptyOptional)
	}
	return naiveText(d, v)
}

var naiveScope = []naiveField{
	{"schema_version", 'r', naiveInt(32)}, {"tenant_id", 'd', naiveTenant}, {"logical_session_id", 'o', naiveText},
	{"prompt_hash", 'r', naiveText}, {"execute_session_id", 'r', naiveText}, {"catalog_cgs_hash", 'r', naiveText},
	{"domain_revision", 'r', naiveInt(32)}, {"entry_id", 'r', naiveText},
}

var naiveKinds = map[string][]naiveField{
	"intent_bound": {{"kind", 'r', naiveText}, {"intent_digest", 'r', naiveDigest}, {"intent_len", 'r', naiveInt(32)}},
	"comp_committed": {{"kind", 'r', naiveText}, {"plan_commit_id_hex", 'r', naiveText},
		{"comp_semantic_sha256", 'r', naiveDigest}, {"step_topo", 'r', naiveTexts}},
	"step_executed": {{"kind", 'r', naiveText}, {"step_id", 'r', naiveText}, {"step_index", 'r', naiveInt(32)}, {"entry_id", 'o', naiveText},
		{"request_fingerprints", 'r', naiveTexts}, {"source_line", 'r', naiveText}, {"parsed_expr_digest", 'r', naiveDigest}},
	"run_sealed": {{"kind", 'r', naiveText}, {"run_id", 'r', naiveText}, {"step_id", 'o', naiveText},
		{"resource_index", 'o', naiveInt(64)}, {"run_bundle_digest", 'r', naiveDigest}},
}

var naiveBundle = []naiveField{
	{"scope", 'r', func(d *naiveDecoder, v naiveValue) any { return d.record(v, naiveScope) }},
	{"chain", 'r', func(d *naiveDecoder, v naiveValue) any {
		return d.record(v, []naiveField{{"segments", 'r', naiveSegments}, {"head", 'o', naiveDigest}})
	}},
	{"anchors", 'd', func(d *naiveDecoder, v naiveValue) any {
		if v.kind == 'o' && len(v.items) == 0 {
			d.say(CodeEmptyOptional)
		}
		return d.record(v, []naiveField{{"plan_commit_ref", 'o', naiveText}, {"trace_id", 'o', naiveTrace}, {"plan_call_index", 'o', naiveInt(64)}})
	}},
	{"signature", 'o', func(d *naiveDecoder, v naiveValue) any {
		return d.record(v, []naiveField{{"public_key_hex", 'r', naiveHexText(64)}, {"signature_hex", 'r', naiveHexText(128)}})
	}},
}

func naiveSegments(d *naiveDecoder, v naiveValue) any {
	d.bad = d.bad || v.kind != 'a'
	list := []naiveRecord{}
	for _, item := range v.items {
		list = append(list, d.record(item, []naiveField{
			{"seq", 'r', naiveInt(64)}, {"prev", 'o', naiveDigest}, {"kind", 'r', naiveKind}, {"emitted_at_ms", 'o', naiveInt(64)},
		}))
	}
	return list
}

func naiveKind(d *naiveDecoder, v naiveValue) any {
	tag := ""
	if v.kind == 'a' && len(v.items) > 0 {
		tag = v.items[0].text
	}
	for i, name := range v.names {
		if name == "kind" && tag == "" {
			tag = v.items[i].text
		}
	}
	fields, known := naiveKinds[tag]
	if !known {
		d.bad = true
		return naiveRecord{}
	}
	return d.record(v, fields)
}

func (d *naiveDecoder) record(v naiveValue, fields []naiveField) naiveRecord {
	out := naiveRecord{}
	if v.kind == 'a' {
		d.say(CodeNotAnObject)
		d.bad = d.bad || len(v.items) > len(fields)
	} else if v.kind != 'o' {
		d.bad = true
		return out
	}
	seen := map[string]bool{}
	for i, item := range v.items {
		if d.bad {
			return out
		}
		name := ""
		if v.kind == 'o' {
			name = v.names[i]
		} else {
			name = fields[i].name
		}
		d.member(out, seen, name, item, fields)
	}
	for _, f := range fields {
		d.bad = d.bad || f.need == 'r' && !seen[f.name]
	}
	return out
}

func (d *naiveDecoder) member(out naiveRecord, seen map[string]bool, name string, v naiveValue, fields []naiveField) {
	for _, f := range fields {
		if f.name != name {
			continue
		}
		d.bad = d.bad || seen[name]
		seen[name] = true
		if f.need == 'o' && v.kind == '0' {
			d.say(CodeExplicitNull)
			return
		}
		out[name] = f.read(d, v)
		return
	}
	d.say(CodeUnknownMember)
}
