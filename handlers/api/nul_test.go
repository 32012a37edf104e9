package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"posthorn/domain/id"
)

// Every parameter of every read takes any bytes: what no row can have finds nothing, or is refused by name.
func TestBytesThatNoTextCanHaveAreNoServerError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	endpoint := w.active(tn, nil)
	event := w.do("POST", "/api/v1/events", tn.key, `{"type":"a.b","data":{"s":"x"}}`).want(http.StatusAccepted).text("id")
	hole := regexp.MustCompile(`\{(\w+)\}`)
	tried := 0
	try := func(path, key string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		tried++
		if a, _ := w.serve(r); a.Status >= 500 {
			t.Errorf("GET %s: %d %s", path, a.Status, a.Body)
		}
	}
	for path, item := range theContract(t).Paths.Map() {
		if item.Get == nil || strings.Contains(path, "stream") || strings.Contains(path, "listeners/") {
			continue // streams do not end
		}
		full := "/api/v1" + path
		filled := hole.ReplaceAllStringFunc(full, func(name string) string {
			switch name {
			case "{endpoint_id}":
				return endpoint
			case "{event_id}":
				return event
			}
			return id.Job.Format(id.None)
		})
		for _, text := range []string{"%00", "a%00b", "%ED%A0%BD", "%FF%FE"} {
			for _, key := range []string{tn.key, w.platform} {
				if strings.Contains(full, "{") {
					try(hole.ReplaceAllString(full, text), key)
				}
				for _, p := range slices.Concat(item.Parameters, item.Get.Parameters) {
					if p.Value != nil && p.Value.In == "query" {
						try(filled+"?"+p.Value.Name+"="+text, key)
					}
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d requests: the contract was not walked", tried)
	}
}

// Data with a NUL, or half of a surrogate pair, is accepted, so it can be erased by its value.
func TestDataWithANULIsExpungedByItsValue(t *testing.T) {
	t.Parallel()
	for _, match := range []string{
		`{"s":"a\u0000b"}`, `{"a\u0000b":"x"}`, `"data.s == \"a\u0000b\""`, `{"s":"\ud83d"}`, `"data.s == \"a\\u0000b\""`, `{"s":"\\u0000"}`, `{"s":"plain"}`,
	} {
		w := newWorld(t)
		tn := w.tenant("a")
		body := `{"reason":"x","match":` + match
		dry := w.ask("POST", "/api/v1/expunges", tn.key, body+`,"dry_run":true}`)
		real := w.ask("POST", "/api/v1/expunges", tn.key, body+`}`)
		if dry.Status/100 != real.Status/100 || real.Status >= 500 {
			t.Errorf("%s: a dry run %d, the job %d: %s", match, dry.Status, real.Status, real.Body)
			continue
		}
		if real.Status/100 != 2 {
			continue
		}
		job := w.ask("GET", "/api/v1/bulk-jobs/"+real.text("id"), tn.key, "").want(http.StatusOK)
		if !strings.Contains(string(job.Body), `"match":`+match) {
			t.Errorf("%s is shown as %s", match, job.Body)
		}
	}
}

func TestANumberBeyondAllDoublesIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	const start = `{"url":"https://a.example.com","event_types":["*"],`
	for field, rest := range map[string]string{
		"filter.h":            `"filter":{"h":1e400}}`,
		"retry_policy.jitter": `"retry_policy":{"name":"custom","delays":[5],"jitter":-1e400}}`,
		"rate_limit":          `"rate_limit":1e400}`,
	} {
		w.ask("POST", "/api/v1/endpoints", tn.key, start+rest).problem(http.StatusBadRequest, "out_of_range", field)
	}
}
