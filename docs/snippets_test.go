package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proofs say, for the examples of each page by language, how many there are and which test runs them.
var proofs = map[string]struct {
	blocks int
	test   string // of a file, from the top of the house; or, after a hyphen, why none runs them
}{
	"README.md sh":           {7, "web/e2e/readme_test.go TestTheQuickStartOfTheREADMEEndsWithAVerifiedWebhook"},
	"docs/cli.md sh":         {2, "web/cli_page_test.go TestTheCommandsOfThePageAreOnesThatThereAre"},
	"docs/cli.md go":         {1, "docs/verify_test.go"},
	"docs/errors.md json":    {1, "handlers/errors_test.go"},
	"docs/kafka.md sh":       {1, "- it needs a broker"},
	"docs/kafka.md json":     {1, "- it needs a broker"},
	"docs/kafka.md go":       {1, "- it needs a broker"},
	"docs/migrate.md json":   {1, "web/import_test.go TestTheExampleOfTheMigrationPageCanBeBroughtIn"},
	"docs/migrate.md sh":     {1, "handlers/api/typed_docs_test.go TestTheCommandsOfTheGuidesCanBeTyped"},
	"docs/outbox.md sh":      {1, "handlers/api/typed_docs_test.go TestTheCommandsOfTheGuidesCanBeTyped"},
	"docs/outbox.md sql":     {3, "db/outbox_page_test.go TestTheStatementsOfTheOutboxPageRun"},
	"docs/program.md go":     {1, "web/program_example_test.go TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies"},
	"docs/program.md python": {1, "web/program_example_test.go TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies"},
	"docs/program.md js":     {1, "web/program_example_test.go TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies"},
	"docs/replay.md sh":      {8, "handlers/api/replay_guide_test.go TestTheRecoveryGuideCanBeTyped"},
	"docs/verify.md go":      {6, "docs/verify_test.go"},
	"docs/verify.md js":      {6, "docs/verify_test.go"},
	"docs/verify.md python":  {6, "docs/verify_test.go"},
	"docs/performance.md sh": {1, "- it measures for an hour"},
	"docs/status.md json":    {1, "- the shape of an answer"},
	"docs/scale.md sh":       {1, "- it measures for an hour"},
}

// TestEveryExampleIsRunByATest counts the examples of the pages; those of ops/ are for a machine of one's own. Who adds one says here which test runs it.
func TestEveryExampleIsRunByATest(t *testing.T) {
	t.Parallel()
	fence := regexp.MustCompile("(?m)^```([a-z]+)")
	counts := map[string]int{}
	for _, pattern := range []string{"../README.md", "*.md", "adr/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(filepath.ToSlash(filepath.Join("docs", file)), "/")
			for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
				counts[name+" "+m[1]]++
			}
		}
	}
	for what, n := range counts {
		if proofs[what].blocks != n {
			t.Errorf("%s: %d examples, %d of them are known to be run by a test", what, n, proofs[what].blocks)
		}
	}
	for what, p := range proofs {
		if strings.HasPrefix(p.test, "- ") {
			continue
		}
		file, name, _ := strings.Cut(p.test, " ")
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil || !strings.Contains(string(text), "func "+name) {
			t.Errorf("%s: there is no %s: %v", what, p.test, err)
		}
	}
}
