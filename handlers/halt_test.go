package handlers

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/endpoint"
)

// What a form's sender typed is shown to them again, and a password is shown to nobody.
func TestFieldsOfPasswordsAreSecret(t *testing.T) {
	t.Parallel()
	field := regexp.MustCompile(`Name: "([a-z_]+)"[^}\n]*Type: "password"|CheckPassword\("([a-z_]+)"`)
	found := map[string]bool{}
	for _, root := range []string{".", "../views"} {
		err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".templ") {
				return err
			}
			text, err := fs.ReadFile(os.DirFS(root), path)
			for _, m := range field.FindAllStringSubmatch(string(text), -1) {
				found[m[1]+m[2]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range found {
		if !isSecret(name) {
			t.Errorf("what is typed into %q is shown", name)
		}
	}
	for _, name := range []string{"sasl_password", "password", "secret_access_key"} { // fields of a table (domain/endpoint/connection.go)
		for _, kind := range []string{"kafka", "rabbitmq", "sqs", "s3"} {
			if form := kind + "_" + name; endpoint.IsConnectionSecret(form) {
				found[form] = true
			}
		}
	}
	if len(found) < 7 {
		t.Errorf("only %d fields were found", len(found))
	}
}
