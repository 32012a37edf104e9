package docs_test

import (
	"strings"
	"testing"
)

// The comments that name tests are for maintainers: no page, no Markdown copy and no list for language models contains
// them.
func TestReadersDoNotSeeWhichTestShowsAPromise(t *testing.T) {
	t.Parallel()
	get := server(t)
	for _, path := range []string{"/docs/ops/backup", "/docs/ops/console", "/docs/scale", "/llms-full.txt"} {
		for _, end := range []string{"", ".md"} {
			status, body := get(path + end)
			if strings.HasPrefix(path, "/llms") && end != "" {
				continue
			}
			if status != 200 || strings.Contains(body, "<!-- test") || strings.Contains(body, "&lt;!--") || strings.Contains(body, "<!-- no claim") ||
				strings.Contains(body, "raw HTML omitted") {
				t.Errorf("%s%s: %d, or it shows a comment for maintainers", path, end, status)
			}
		}
	}
}
