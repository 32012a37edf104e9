package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/source"
	"posthorn/domain/words"
)

// TestTheMappingsOfThePageCanBeUsed checks each mapping of docs/sources.md, and that the page names the bounds.
func TestTheMappingsOfThePageCanBeUsed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("sources.md")
	if err != nil {
		t.Fatal(err)
	}
	page, tried := string(text), 0
	for _, block := range regexp.MustCompile("(?s)\n```cel\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if _, err := source.Compile(strings.TrimSpace(line)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			tried++
		}
	}
	if tried != 4 {
		t.Errorf("%d mappings were tried", tried)
	}
	_, rejected := source.Counted()
	for _, bound := range []string{words.Number(rejected) + " messages", "15 days", "at most 10 sources", "one batch of 200"} {
		if !strings.Contains(page, bound) {
			t.Errorf("the page does not say %s", bound)
		}
	}
	if source.KeptDays != 15 || source.MaxSources != 10 || source.Batch != 200 {
		t.Error("the page names other bounds")
	}
}
