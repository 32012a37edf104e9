// Package maven brings programs of Java from Maven for tests, once for a machine.
package maven

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"posthorn/tools/need"
)

// plugin copies what a project depends on.
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

// Jars returns the folder with the jars that a project depends on: `mvn` with its own settings finds them. Where there
// is no Java, no Maven, or no way to the repository, the test is skipped. pom is the project's file.
func Jars(t testing.TB, name string, pom []byte) string {
	t.Helper()
	need.Programs(t, "java", "mvn")
	sum := sha256.Sum256(pom)
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "posthorn", name+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	// Beside it first, so that what is there is whole.
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		t.Fatal(err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(part) }()
	file := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	out, err := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "-f", file, plugin, "-DincludeScope=runtime", "-DoutputDirectory="+part).CombinedOutput()
	need.Reached(t, "Maven Central", err, out)
	_ = os.Rename(part, dir) // another can have been first
	t.Logf("the jars of %s were brought in %v", name, time.Since(started).Round(time.Second))
	return dir
}
