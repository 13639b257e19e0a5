package server

import (
	"reflect"
	"strings"

	"github.com/chaind/chaind/events"
)

// schemaSet collects JSON Schemas of the documents by name. They are made from
// the Go types that the answers are written from, so that they cannot differ.
type schemaSet tree

// words are the values of types that have few.
func words() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[events.Outcome]():    outcomeNames(),
		reflect.TypeFor[events.Conformity](): conformityNames(),
		reflect.TypeFor[events.Verb]():       {string(events.VerbIntent), string(events.VerbCommit), string(events.VerbStep), string(events.VerbSeal)},
	}
}

// of gives the schema of a value's type; structs are named and referred to.
func (s schemaSet) of(v any) tree { return s.ofType(reflect.TypeOf(v)) }

func (s schemaSet) ofType(t reflect.Type) tree {
	switch t.Kind() {
	case reflect.Pointer:
		return tree{"anyOf": []any{s.ofType(t.Elem()), tree{"type": "null"}}}
	case reflect.Slice, reflect.Array:
		return tree{"type": "array", "items": s.ofType(t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return tree{"type": "object", "additionalProperties": s.ofType(t.Elem())}
		}
		return tree{"type": "object"}
	case reflect.Struct:
		return s.ofStruct(t)
	case reflect.Bool:
		return tree{"type": "boolean"}
	case reflect.String:
		schema := tree{"type": "string"}
		if few, ok := words()[t]; ok {
			schema["enum"] = append([]string{""}, few...)
		}
		return schema
	case reflect.Float64:
		return tree{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return tree{"type": "integer", "minimum": 0}
	}
	return tree{"type": "integer"}
}

func (s schemaSet) ofStruct(t reflect.Type) tree {
	if t == reflect.TypeFor[evidenceBundle]() {
		return tree{"type": "object"}
	}
	name := strings.TrimSuffix(t.Name(), "Document")
	ref := tree{"$ref": "#/components/schemas/" + name}
	if _, known := s[name]; known {
		return ref
	}
	s[name] = nil // a type that contains itself ends here
	properties, required := tree{}, []string{}
	s.members(t, properties, &required)
	s[name] = tree{"type": "object", "properties": properties, "required": required}
	return ref
}

// members adds a struct's members, those of embedded structs among them.
func (s schemaSet) members(t reflect.Type, properties tree, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			s.members(f.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		properties[name] = s.ofType(f.Type)
		if options == "" {
			*required = append(*required, name)
		}
	}
}
