//go:build (e2e || soak) && linux

package e2e

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/tools/need"
	"posthorn/tools/readtest"
	"posthorn/tools/schematest"
)

// TestATenantsStatementsReadNoMoreOnOtherServers is db's TestATenantsStatementsReadNoMoreOfALongerHistory on a minor
// release from before the change of November 2026, and on the newest builds of Maven. db's own test takes the installed
// PostgreSQL.
func TestATenantsStatementsReadNoMoreOnOtherServers(t *testing.T) {
	t.Parallel()
	others := map[string]func(t *testing.T) (bin string){
		"Debian's 15.18": func(t *testing.T) string { return debianPostgres(t, "15", "15.18-0+deb12u1") },
		"the newest 18":  func(t *testing.T) string { return mavenPostgres(t, 18) },
	}
	if thorough {
		others["the newest 16"] = func(t *testing.T) string { return mavenPostgres(t, 16) }
		others["the newest 17"] = func(t *testing.T) string { return mavenPostgres(t, 17) }
	}
	for name, bring := range others {
		t.Run(name, func(t *testing.T) {
			bin := bring(t)
			s := &server{t: t, name: name, host: "127.0.0.1", port: freePort(t), at: place{who: unprivileged(t)}}
			s.data = filepath.Join(folder(t), "data")
			version := startAt(t, s, bin)
			s.admit()
			url := urlOf(s)
			if err := schematest.Migrate(t.Context(), url); err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			d, err := db.Open(t.Context(), url, db.Options{MaxConns: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			tenant, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "t"}, db.Author{Kind: "command"})
			if err != nil {
				t.Fatal(err)
			}
			owner, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = owner.Close(context.Background()) }()
			t.Log(version)
			measured := readtest.Server{Conn: owner, Tenant: tenant.ID.String()}
			readtest.Check(t, measured, filepath.Join("..", "..", "db", "sql"))
		})
	}
}

// startAt makes a cluster with the programs of a folder and starts it. It returns the version.
func startAt(t *testing.T, s *server, bin string) string {
	t.Helper()
	out, err := s.at.command(filepath.Join(bin, "initdb"),
		"-D", s.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	log := newLines(t, s.name)
	cmd := s.at.command(filepath.Join(bin, "postgres"), "-D", s.data, "-c", "listen_addresses="+s.host, "-c", "port="+s.port,
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "jit=off", "-c", "timezone=UTC", "-c", "logging_collector=off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		log.end()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	eventually(t, patience, s.name+" answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("it ended:\n%s", log.tail(20))
		default:
		}
		conn, err := s.connect()
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
	return s.ask("SELECT version()")
}

// bringing skips the test where a program is missing that brings a server.
func bringing(t *testing.T, programs ...string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		need.Missing(t, "amd64", "The servers are brought for it.")
	}
	need.Programs(t, programs...)
}

// brought runs a program that brings something from elsewhere into a folder of its own.
func brought(t *testing.T, what, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	need.Reached(t, what, err, out)
}

// debianPostgres unpacks a version of Debian's package and returns the folder of its programs.
func debianPostgres(t *testing.T, major, version string) string {
	t.Helper()
	bringing(t, "apt-get", "dpkg-deb")
	dir := folder(t)
	brought(t, "postgresql-"+major+"="+version, dir, "apt-get", "download", "postgresql-"+major+"="+version)
	packages, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(packages) != 1 {
		t.Fatalf("apt-get brought %q", packages)
	}
	brought(t, packages[0], dir, "dpkg-deb", "-x", packages[0], "root")
	return filepath.Join(dir, "root", "usr", "lib", "postgresql", major, "bin")
}

// mavenPostgres unpacks the newest build of a major version and returns the folder of its programs.
func mavenPostgres(t *testing.T, major int) string {
	t.Helper()
	bringing(t, "mvn", "tar", "xz")
	dir := folder(t)
	pom, err := filepath.Abs(filepath.Join("testdata", "postgres", "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	brought(t, fmt.Sprintf("a build of PostgreSQL %d from Maven", major), dir,
		"mvn", "-q", "-B", "-f", pom, fmt.Sprintf("-Drange=[%d,%d.999]", major, major),
		"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DoutputDirectory="+dir)
	jars, _ := filepath.Glob(filepath.Join(dir, "*.jar"))
	if len(jars) != 1 {
		t.Fatalf("Maven brought %q", jars)
	}
	jar, err := zip.OpenReader(jars[0])
	if err != nil {
		t.Fatal(err)
	}
	defer jar.Close()
	at := slices.IndexFunc(jar.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, ".txz") })
	if at < 0 {
		t.Fatalf("%s has no archive", jars[0])
	}
	archive, err := jar.File[at].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	file, err := os.Create(filepath.Join(dir, "archive.txz"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(file, archive); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	brought(t, "the archive", dir, "tar", "-xJf", file.Name())
	return filepath.Join(dir, "bin")
}
