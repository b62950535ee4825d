package webui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/webui/access"
	"fairway/webui/api"
)

// openAPI answers the API's description, made from the table of routes, so that it cannot
// differ from what is served.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, describe(s.rows, s.version))
}

type object = map[string]any

func describe(rows []row, version string) object {
	k := schemas{object{}}
	refuse := object{"description": "refused: " + api.ProblemType,
		"content": object{api.ProblemType: object{"schema": k.of(reflect.TypeFor[api.Problem]())}}}
	paths := object{}
	for i := range rows {
		t := &rows[i]
		item, ok := paths[t.Path].(object)
		if !ok {
			item = object{}
			paths[t.Path] = item
		}
		answer := object{"description": t.about}
		if t.out != nil {
			answer["content"] = object{"application/json": object{"schema": k.of(t.out)}}
		}
		op := object{"summary": t.about, "x-role": cmp.Or(string(t.Need), "anybody"), "x-listeners": t.On.Names(),
			"responses": object{"200": answer, "default": refuse}}
		if p := parameters(t); len(p) > 0 {
			op["parameters"] = p
		}
		if t.in != nil {
			op["requestBody"] = object{"required": true,
				"content": object{"application/json": object{"schema": k.of(t.in)}}}
		}
		item[strings.ToLower(t.Method)] = op
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "fairway", "version": cmp.Or(version, "devel"),
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths": paths,
		"components": object{"schemas": k.named, "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer"},
			"cookie": object{"type": "apiKey", "in": "cookie", "name": access.CookieName},
			"secret": object{"type": "apiKey", "in": "header", "name": access.SecretHeader},
		}},
		"security": []object{{}, {"bearer": []string{}}, {"cookie": []string{}, "secret": []string{}}},
	}
}

func parameters(t *row) (list []object) {
	for _, part := range strings.Split(t.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true,
				"schema": object{"type": "string"}})
		}
	}
	for _, p := range t.query {
		name, about, _ := strings.Cut(p, ": ")
		list = append(list, object{"name": name, "in": "query", "description": about,
			"schema": object{"type": "string"}})
	}
	if t.Keyed() {
		list = append(list, object{"name": "Idempotency-Key", "in": "header", "required": true,
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 200},
			"description": "the same key with the same body is answered alike; with another body it is refused"})
	}
	return list
}

// schemas collects JSON schemas of Go types by name.
type schemas struct{ named object }

// of returns the schema of a type as encoding/json writes it.
func (k schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	case reflect.TypeFor[topology.Role](), reflect.TypeFor[collector.Metric]():
		return object{"type": "string"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[api.Values]():
		return object{"type": "object", "additionalProperties": object{"type": "number"}}
	case reflect.TypeFor[rootcause.Known]():
		return object{"type": []string{"number", "null"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := k.of(t.Elem())
		return object{"anyOf": []object{inner, {"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Interface:
		return object{}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": k.of(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": k.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": k.of(t.Elem())}
	case reflect.Struct:
		return k.structure(t)
	}
	return object{"type": "integer"}
}

// structure names the schema after the type and its package, and refers to it.
func (k schemas) structure(t reflect.Type) object {
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	name := pkg + "." + t.Name()
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, done := k.named[name]; done {
		return ref
	}
	k.named[name] = object{} // a type may hold itself
	props, required := object{}, []string{}
	k.fields(t, props, &required)
	k.named[name] = object{"type": "object", "properties": props, "required": required, "additionalProperties": false}
	return ref
}

func (k schemas) fields(t reflect.Type, props object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			if inner := f.Type; inner.Kind() == reflect.Pointer { // absent as a whole where it is nil
				k.fields(inner.Elem(), props, &[]string{})
			} else {
				k.fields(inner, props, required)
			}
		default:
			name = cmp.Or(name, f.Name)
			props[name] = k.of(f.Type)
			if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
				*required = append(*required, name)
			}
		}
	}
}
