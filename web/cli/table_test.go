package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Names, errors and responses of others can have any characters.
func TestNothingThatOthersWroteControlsTheTerminal(t *testing.T) {
	t.Parallel()
	const hostile = "mark\x1b[2J\x1b]0;owned\x07\r\u009b31m\x9bm\u202e\u2066"
	control := regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f]|\u009b|\u202e|\u2066")
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		e := &Env{Stdout: &out, Stderr: &out, Terminal: terminal}
		type named string
		e.table([]string{"NAME", "WHAT"}, [][]string{{hostile, "a\nb"}, {"active", hostile}})
		e.pairs("Name", hostile, hostile, "delivered")
		e.printf("%s %v %v %d\n", hostile, errors.New(hostile), named(hostile), 7)
		e.notef("%s\n", e.paint(red, hostile))
		e.notef("%v\n", []string{hostile})
		if err := e.json(map[string]string{"a": hostile}); err != nil {
			t.Fatal(err)
		}
		if terminal {
			if err := e.file([]byte(hostile)); err != nil {
				t.Fatal(err)
			}
		}
		colors := regexp.MustCompile("\x1b\\[(2|31|32|33|0)m").FindAllString(out.String(), -1)
		if terminal == (len(colors) == 0) {
			t.Errorf("a terminal %t: %d colors", terminal, len(colors))
		}
		rest := regexp.MustCompile("\x1b\\[(2|31|32|33|0)m").ReplaceAllString(out.String(), "")
		if found := control.FindString(rest); found != "" || !strings.Contains(rest, `mark\u001b[2J`) {
			t.Errorf("a terminal %t gets %q: %q", terminal, found, rest)
		}
		if strings.Contains(rest, "a\nb") {
			t.Error("a cell breaks its line")
		}
	}
	var out bytes.Buffer
	if err := WriteJSON(&out, []string{"a\x7f\u202e<b>"}); err != nil {
		t.Fatal(err)
	}
	var back []string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[0] != "a\x7f\u202e<b>" {
		t.Errorf("%s is other JSON: %q, %v", out.String(), back, err)
	}
}

// A file for a program is byte for byte what it is.
func TestAFileIsWrittenAsItIsWhereNobodyWatches(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := &Env{Stdout: &out}
	if err := e.file([]byte("a: \u202e\x9b")); err != nil || out.String() != "a: \u202e\x9b" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Every command prints by Fprintf and WriteJSON, the server's commands too.
func TestNothingPrintsPastTheOneFunction(t *testing.T) {
	t.Parallel()
	past := regexp.MustCompile(`(?i)fmt\.(Print\w*|Fprint\w*)\((e\.|a\.)?(std(out|err)|table|list|os\.Std\w+)?[,)]|io\.WriteString\((e|a)\.std|(e|a)\.std(out|err)\.Write\(`)
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("../../web/*.go")
	if len(files) < 20 || len(more) < 20 {
		t.Fatal("the commands are elsewhere")
	}
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") || file == "table.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := past.Find(text); found != nil {
			t.Errorf("%s: %s", file, found)
		}
	}
}
