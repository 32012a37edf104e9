package transform

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// presetEvents are what presets are tried with: data of any type, a notice, and texts that are too long or dangerous.
var presetEvents = map[string]string{
	"object":  `{"total":1.5,"text":"<b>&\"\\"}`,
	"list":    `[1,2]`,
	"text":    `"a <script> & b"`,
	"null":    `null`,
	"notice":  `{"title":"Endpoint disabled","message":"It failed for 5 days.","status":"triggered","severity":"critical","dedup_key":"ep_1/health","url":"https://hooks.example.com/t/1"}`,
	"solved":  `{"title":"Endpoint recovered","status":"resolved","severity":"info","dedup_key":"ep_1/health"}`,
	"long":    `{"title":"` + strings.Repeat("ä", 3000) + `","message":"` + strings.Repeat("x", 20000) + `","dedup_key":"` + strings.Repeat("k", 1000) + `"}`,
	"foreign": `{"title":7,"status":["x"],"severity":{"a":1},"dedup_key":null}`,
}

// TestEachPresetFitsItsReceiver: whatever the event is, the body is what the receiver documents. The schemas in
// testdata name their sources.
func TestEachPresetFitsItsReceiver(t *testing.T) {
	t.Parallel()
	for _, p := range Presets() {
		x := &Transformation{Preset: p.Name, Variables: map[string]string{}}
		for _, v := range p.Variables {
			x.Variables[v.Name] = "0123456789abcdef0123456789abcdef"
		}
		raw, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if x, err = Parse(raw); err != nil {
			t.Fatal(err)
		}
		if err := x.Check(true); err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		var schema *jsonschema.Schema
		if file := filepath.Join("testdata", p.Name+".json"); exists(file) {
			if schema, err = jsonschema.NewCompiler().Compile(file); err != nil {
				t.Fatal(err)
			}
		}
		for name, data := range presetEvents {
			out, err := Try(x, inputOf(data))
			if err != nil {
				t.Errorf("%s of %s: %v", p.Name, name, err)
				continue
			}
			if strings.Contains(out.ContentType, "json") && !json.Valid(out.Body) {
				t.Errorf("%s of %s: %s is not %s", p.Name, name, out.Body, out.ContentType)
			}
			if schema == nil {
				continue
			}
			body, err := jsonschema.UnmarshalJSON(strings.NewReader(string(out.Body)))
			if err == nil {
				err = schema.Validate(body)
			}
			if err != nil {
				t.Errorf("%s of %s: %v in %.300s", p.Name, name, err, out.Body)
			}
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func TestPagerDutyIncidentsOpenAndResolve(t *testing.T) {
	t.Parallel()
	x, err := Parse([]byte(`{"preset":"pagerduty","variables":{"routing_key":"k"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string][2]string{
		presetEvents["notice"]: {"trigger", "ep_1/health"},
		presetEvents["solved"]: {"resolve", "ep_1/health"},
		presetEvents["object"]: {"trigger", "evt_1"},
	} {
		out, err := Try(x, inputOf(data))
		var body struct {
			Action string `json:"event_action"`
			Key    string `json:"dedup_key"`
		}
		if err != nil || json.Unmarshal(out.Body, &body) != nil || body.Action != want[0] || body.Key != want[1] {
			t.Errorf("%s: %s %v, want %v", data, out.Body, err, want)
		}
	}
}
