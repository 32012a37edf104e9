// Package migrations embeds the schema's history, one file a step, and its functions, one file a function.
//
// Numbers are missing on purpose. A change takes its number before it is merged, so that two changes never take the
// same one, and the number of a change that needed no migration in the end stays free. Goose runs files by their order.
package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
)

// FS holds the migrations, which goose reads, and the folder of functions.
//
//go:embed *.sql functions/*.sql
var FS embed.FS

// Newest is the version of the last migration.
func Newest() (newest int64) {
	entries, err := FS.ReadDir(".")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

var comments = regexp.MustCompile(`(?m)^\s*--.*\n`)

// Functions returns the statements that create each function of the schema as this version has it, and a digest of all
// of them that ignores comments. The statements can be repeated.
func Functions() (statements []string, digest int64) {
	entries, err := FS.ReadDir("functions")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	hash := sha256.New()
	for _, e := range entries {
		text, err := FS.ReadFile("functions/" + e.Name())
		if err != nil {
			panic(err)
		}
		statements = append(statements, string(text))
		hash.Write(comments.ReplaceAll(text, nil))
	}
	return statements, int64(binary.BigEndian.Uint64(hash.Sum(nil)) >> 1)
}
