package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas compiles schemas/event.json per verb, and whole under "".
func schemas(t *testing.T) map[Verb]*jsonschema.Schema {
	t.Helper()
	compiled := map[Verb]*jsonschema.Schema{}
	for verb, fragment := range map[Verb]string{
		"": "", VerbIntent: "#/$defs/intent", VerbCommit: "#/$defs/commit", VerbStep: "#/$defs/step", VerbSeal: "#/$defs/seal",
	} {
		schema, err := jsonschema.NewCompiler().Compile("../schemas/event.json" + fragment)
		if err != nil {
			t.Fatal(err)
		}
		compiled[verb] = schema
	}
	return compiled
}

// structural are the classes that a schema can express.
func structural(f *Fault) bool {
	return f != nil && slices.Contains([]Class{Malformed, UnknownMember, BadID, UnsafeInteger}, f.Class)
}

// beyondSchema are the classes that hide what the schema would say.
func beyondSchema(f *Fault) bool {
	return f != nil && slices.Contains([]Class{BadSubject, TooLarge, TooDeep, DuplicateName}, f.Class)
}

// agree holds schema and decoder against each other on one payload; false when
// the schema cannot judge it.
func agree(t *testing.T, schemas map[Verb]*jsonschema.Schema, m Message, what string) bool {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Payload))
	e := Decode(m, DefaultLimits)
	if err != nil || beyondSchema(e.Fault) || !json.Valid(m.Payload) || bytes.Contains(m.Payload, []byte(`"\ud83d`)) {
		return false
	}
	err = schemas[e.Verb].Validate(value)
	if (err != nil) != structural(e.Fault) {
		t.Errorf("%s: schema says %v, decoder %+v\n%s", what, err, e.Fault, m.Payload)
	}
	if err == nil && schemas[""].Validate(value) != nil {
		t.Errorf("%s: the schema as a whole refuses what it takes for the verb", what)
	}
	return true
}

func TestSchemaAgreesOnVectors(t *testing.T) {
	t.Parallel()
	compiled, judged := schemas(t), 0
	for _, name := range []string{"small", "large"} {
		for n, l := range readLines(t, name) {
			if agree(t, compiled, l.message(n), fmt.Sprintf("%s line %d", name, n)) {
				judged++
			}
		}
	}
	if judged < 3000 {
		t.Errorf("only %d lines were judged", judged)
	}
}

// TestSchemaAgreesOnMutants changes each member of each distinct well-formed
// shape in every way that may matter.
func TestSchemaAgreesOnMutants(t *testing.T) {
	t.Parallel()
	compiled, judged := schemas(t), 0
	shapes := map[string]bool{}
	for n, l := range readLines(t, "large") {
		m := l.message(n)
		e := Decode(m, DefaultLimits)
		if e.Fault != nil || len(m.Payload) > 4000 {
			continue
		}
		value := parse(t, m.Payload)
		shape := string(e.Verb) + shapeOf(value)
		if shapes[shape] {
			continue
		}
		shapes[shape] = true
		for what, mutant := range mutants(value) {
			m.Payload = mutant()
			if agree(t, compiled, m, fmt.Sprintf("line %d, %s", n, what)) {
				judged++
			}
		}
		if len(shapes) >= 40 {
			break
		}
	}
	if judged < 10000 {
		t.Errorf("only %d mutants were judged", judged)
	}
}

func parse(t *testing.T, text []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value map[string]any
	if err := dec.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func shapeOf(value map[string]any) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if name == "at_ms" || name == "producer_seq" {
			continue // present or not, they say nothing about the rest
		}
		b.WriteString(name + ",")
		if name == "phase" {
			fmt.Fprint(&b, value[name])
		}
		if sub, ok := value[name].(map[string]any); ok && (name == "kind" || name == "preimage") {
			b.WriteString("{" + shapeOf(sub) + "}")
		}
	}
	return b.String()
}

// mutants yields changed texts of the whole for each member of the objects in
// value, which is a part of it; the change is undone after each.
func mutants(whole map[string]any) func(func(string, func() []byte) bool) {
	text := func() []byte { b, _ := json.Marshal(whole); return b }
	others := []any{nil, true, "", "x", []any{}, []any{"a"}, []any{json.Number("7")}, map[string]any{},
		json.Number("-1"), json.Number("0"), json.Number("1"), json.Number("1.5"), json.Number("4294967296"),
		json.Number("9007199254740991"), json.Number("9007199254740992"), strings.Repeat("a", 64), strings.Repeat("A", 64)}
	var walk func(object map[string]any, path string, yield func(string, func() []byte) bool) bool
	walk = func(object map[string]any, path string, yield func(string, func() []byte) bool) bool {
		object["strange"] = json.Number("1")
		ok := yield("a strange member in "+path, text)
		delete(object, "strange")
		for _, name := range slices.Sorted(maps.Keys(object)) {
			was := object[name]
			delete(object, name)
			ok = ok && yield("without "+path+name, text)
			for _, other := range others {
				object[name] = other
				ok = ok && yield(fmt.Sprintf("%s%s = %v", path, name, other), text)
			}
			object[name] = was
			if sub, is := was.(map[string]any); ok && is && name != "comp" && name != "parsed" && name != "parsed_preimage" {
				ok = walk(sub, path+name+".", yield)
			}
			if !ok {
				return false
			}
		}
		return ok
	}
	return func(yield func(string, func() []byte) bool) { walk(whole, "", yield) }
}
