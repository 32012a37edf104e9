package main

import (
	"os"
	"regexp"
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
