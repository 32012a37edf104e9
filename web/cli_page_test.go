package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"posthorn/web/cli"
)

// TestTheCommandsOfThePageAreOnesThatThereAre parses the commands of the pages below.
func TestTheCommandsOfThePageAreOnesThatThereAre(t *testing.T) {
	t.Parallel()
	var page string
	for _, name := range []string{"cli.md", "kafka.md", "rabbitmq.md", "sqs.md", "s3.md", "sources.md", "feeds.md", "receiver-auth.md", "mtls.md", "declarative.md"} {
		text, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page += strings.ReplaceAll(string(text), "\\\n", "")
	}
	word := regexp.MustCompile(`'[^']*'|\S+`)
	parsed := 0
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
			words := word.FindAllString(line, -1)
			if len(words) > 0 && (words[0] == "mkdir" || words[0] == "bin/versitygw") { // a server to try a command with
				continue
			}
			if len(words) == 0 || words[0] != "posthorn" {
				t.Errorf("not a command that this test can read: %s", line)
				continue
			}
			for i := range words {
				words[i] = strings.Trim(words[i], "'")
			}
			parser, err := kong.New(new(cli.New()), kong.Exit(func(int) {}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(words[1:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			parsed++
		}
	}
	if parsed < 5 {
		t.Errorf("%d commands: were they read?", parsed)
	}
}

// A line that begins with a command gets that command as it is in the whole grammar, and nothing else.
func TestTheGrammarOfACommandIsThatOfTheWhole(t *testing.T) {
	t.Parallel()
	leaves := func(line ...string) map[string][]string {
		c := commands{Commands: cli.New()}
		parser, err := kong.New(grammar(&c, line), kong.Name("posthorn"), kong.Vars{"scopes": "all"})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]string{}
		for _, leaf := range parser.Model.Leaves(true) {
			name := strings.Fields(leaf.FullPath())[1]
			all[name] = append(all[name], leaf.Summary())
		}
		return all
	}
	whole := leaves()
	if len(whole) < 30 {
		t.Errorf("only %d commands", len(whole))
	}
	for name, want := range whole {
		if got := leaves(name); len(got) != 1 || !slices.Equal(got[name], want) {
			t.Errorf("%s: %q, want %q alone", name, got, want)
		}
	}
}
