package strictjson

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	type job struct {
		Name string
		Size *float64
	}
	var v struct {
		Jobs  []job
		Count int
		On    bool
	}
	for text, want := range map[string]string{
		"{\"Jobs\":[{\"Name\":\"a\",\"Size\":1}],\n\"Count\":3,\"On\":true}\n \n": "",
		"":                                     "it is empty",
		" \n":                                  "it is empty",
		"{\n\"Jobs\":[\n{}":                    "line 3: the text ends inside the object",
		"{\n\"Jobs\":[,]}":                     "line 2: not JSON: invalid character ','",
		"{\n\"Jbs\":[]}":                       `line 2: unknown field "Jbs"`,
		"{}\n{}":                               "line 2: something follows",
		"{\n\"Jobs\":[{},\n{\"Size\":\"x\"}]}": "line 3: Jobs.Size: a JSON string; want a number",
		"{\"Count\":2.5}":                      "line 1: Count: a JSON number 2.5; want a whole number",
		"{\"On\":1}":                           "want true or false",
		"{\"Jobs\":{}}":                        "want a list",
		"[]":                                   "line 1: a JSON array; want an object",
		"{\"\\u004abs\":[]}":                   `unknown field "Jbs"`,
		strings.Repeat(" ", 200) + "{}":        "more than 100 bytes",
	} {
		err := Read(strings.NewReader(text), 100, &v)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
