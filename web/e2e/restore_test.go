//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/tools/need"
)

// installations are the folders of PostgreSQL's programs that have a dump's: the oldest and the newest that are found.
// POSTHORN_E2E_POSTGRES adds folders, separated as in PATH.
func installations(t *testing.T) []string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump")
	for _, dir := range filepath.SplitList(os.Getenv("POSTHORN_E2E_POSTGRES")) {
		found = append(found, filepath.Join(dir, "pg_dump"))
	}
	if len(found) == 0 {
		need.Missing(t, "pg_dump", "Install it as Debian does, or name its folder in POSTHORN_E2E_POSTGRES.")
	}
	first, last := filepath.Dir(found[0]), filepath.Dir(found[len(found)-1])
	return slices.Compact([]string{first, last})
}

// onOldestAndNewest runs a test on both, because their rules for roles differ.
func onOldestAndNewest(t *testing.T, test func(t *testing.T, bin string)) {
	t.Helper()
	found := installations(t)
	for i, bin := range found {
		t.Run([]string{"oldest", "newest"}[i], func(t *testing.T) {
			t.Parallel()
			test(t, bin)
		})
	}
	if len(found) == 1 {
		t.Run("newest", func(t *testing.T) {
			need.Missing(t, "a second PostgreSQL", "There is that of %s. POSTHORN_E2E_POSTGRES can name the folder of another one's programs.", found[0])
		})
	}
}

// cluster is a PostgreSQL of these programs whose superuser has a name of its own.
func cluster(t *testing.T, bin, superuser string, settings ...string) (url func(user, database string) string) {
	t.Helper()
	data, port, at := filepath.Join(folder(t), "data"), freePort(t), place{who: unprivileged(t)}
	if said, err := at.command(filepath.Join(bin, "initdb"), "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "-N").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	log := newLines(t, superuser)
	arguments := []string{"-D", data, "-p", port}
	for _, s := range append(settings, "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off") {
		arguments = append(arguments, "-c", s)
	}
	cmd := at.command(filepath.Join(bin, "postgres"), arguments...)
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
	url = func(user, database string) string {
		return "postgres://" + user + "@127.0.0.1:" + port + "/" + database + "?sslmode=disable"
	}
	eventually(t, patience, "the server responds", func() bool {
		conn, err := pgx.Connect(t.Context(), url(superuser, "postgres"))
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
	return url
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// shell runs the commands of a page in a folder, with these programs and the binary.
func shell(t *testing.T, dir, bin string, environ []string, commands string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + bin + ":" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "HOME=" + dir}, environ...)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// A copy that can't be brought back is none. The page is run command by command: on the oldest and the newest version,
// to a server whose superuser has another name, and as an administrator who is no superuser, as on a managed server.
func TestABackupIsRestoredOnAnotherServerAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/ops/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 || !strings.Contains(blocks[0][1], "pg_dump") || !strings.Contains(blocks[1][1], "pg_restore") {
		t.Fatalf("the page has other commands: %q", blocks)
	}
	onOldestAndNewest(t, func(t *testing.T, bin string) {
		source := cluster(t, bin, "postgres")
		execute(t, source("postgres", "postgres"), "CREATE ROLE posthorn LOGIN CREATEROLE", "CREATE DATABASE posthorn OWNER posthorn")
		w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + source("posthorn", "posthorn"), "POSTHORN_MASTER_KEY=" + masterKey}, nil)
		web := w.launch("web", "web").ready()
		w.serveAt(web)
		w.makeTenant()
		if status, answer, err := w.call(http.MethodPost, web.url+"/api/v1/endpoints", `{"url":"https://example.com/hooks"}`, ""); err != nil || status != http.StatusCreated {
			t.Fatalf("%d %s %v", status, answer, err)
		}
		if code := web.stop(); code != 0 {
			t.Errorf("the first web process stopped with %d", code)
		}
		dir := dataDir(t)
		if said, err := shell(t, dir, bin, nil, `pg_dump --file=own.dump '`+source("posthorn", "posthorn")+`'`); err == nil || !strings.Contains(said, "row-level security") {
			t.Errorf("a dump by Posthorn's own role: %v %s", err, said)
		}
		if said, err := shell(t, dir, bin, []string{"ADMIN_DATABASE_URL=" + source("postgres", "posthorn")}, blocks[0][1]); err != nil {
			t.Fatalf("%v %s", err, said)
		}
		for _, administrator := range []string{"dba", "master"} {
			target := cluster(t, bin, "dba")
			if administrator == "master" {
				execute(t, target("dba", "postgres"), "CREATE ROLE master LOGIN CREATEROLE CREATEDB")
			}
			environ := []string{"POSTHORN_DATABASE_URL=" + target("posthorn", "posthorn"), "POSTHORN_MASTER_KEY=" + masterKey}
			said, err := shell(t, dir, bin, append([]string{"NEW_ADMIN_DATABASE_URL=" + target(administrator, "posthorn")}, environ...), blocks[1][1])
			if err != nil || !strings.Contains(said, "applied") || strings.Contains(said, "missing") {
				t.Fatalf("as %s with %s: %v\n%s", administrator, bin, err, said)
			}
			// Its key opens it, its secrets open, and it takes events.
			web := launch(t, "restored", environ, place{}, "web").ready()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, web.url+"/api/v1/endpoints", nil)
			req.Header.Set("Authorization", "Bearer "+w.key)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK || !strings.Contains(string(body), "https://example.com/hooks") {
				t.Errorf("the restored server answers %d %s", res.StatusCode, body)
			}
			accepted, answer, err := w.call(http.MethodPost, web.url+"/api/v1/events", `{"type":"a.b","data":{}}`, "")
			if err != nil || accepted != http.StatusAccepted {
				t.Errorf("an event at the restored server: %d %s %v", accepted, answer, err)
			}
			// A role that is lost again: the page's check says so, and the process is not ready.
			execute(t, target(administrator, "posthorn"), "REVOKE posthorn_console FROM posthorn CASCADE")
			said, err = shell(t, dir, bin, environ, "posthorn migrate status")
			if err == nil || !strings.Contains(said, "posthorn_console") || !strings.Contains(said, "posthorn migrate roles") {
				t.Errorf("without a role, the check says %v %s", err, said)
			}
			eventually(t, patience, "a process without a role is not ready", func() bool {
				return status(web.metrics+"/readyz") == http.StatusServiceUnavailable
			})
			if code := web.stop(); code != 0 {
				t.Errorf("it stopped with %d", code)
			}
		}
	})
}

func TestMigrateRolesPreparesAServerAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	onOldestAndNewest(t, func(t *testing.T, bin string) {
		url := cluster(t, bin, "dba")
		execute(t, url("dba", "postgres"), "CREATE ROLE master LOGIN CREATEROLE CREATEDB")
		environ := []string{
			"POSTHORN_DATABASE_URL=" + strings.Replace(url("posthorn", "posthorn"), "posthorn@", "posthorn:it%27s%5Cone@", 1), "POSTHORN_MASTER_KEY=" + masterKey,
			"POSTHORN_ADMIN_DATABASE_URL=" + url("master", "postgres"),
		}
		dir := dataDir(t)
		said, err := shell(t, dir, bin, environ, "posthorn migrate roles")
		if err != nil || !strings.Contains(said, "created the role posthorn_tenant") || !strings.Contains(said, "created the database posthorn") || strings.Contains(said, "it's") {
			t.Fatalf("%s: %v\n%s", bin, err, said)
		}
		if again, err := shell(t, dir, bin, environ, "posthorn migrate roles"); err != nil || again != "The roles are complete.\n" {
			t.Errorf("a second time: %v\n%s", err, again)
		}
		launch(t, "serve", environ, place{}, "serve").ready()
		if said, err := shell(t, dir, bin, environ, "posthorn migrate roles && posthorn migrate status"); err != nil {
			t.Errorf("of an installation: %v\n%s", err, said)
		}
	})
}

func TestASecondInstallationOnOneServerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	onOldestAndNewest(t, func(t *testing.T, bin string) {
		url := cluster(t, bin, "dba")
		dir := dataDir(t)
		execute(t, url("dba", "postgres"), "CREATE ROLE master LOGIN CREATEROLE CREATEDB")
		for _, name := range []string{"posthorn", "staging", "third"} {
			execute(t, url("dba", "postgres"), "CREATE ROLE "+name+" LOGIN CREATEROLE", "CREATE DATABASE "+name+" OWNER "+name)
		}
		up := func(user, database, admin string, commands string) (string, error) {
			return shell(t, dir, bin, []string{"POSTHORN_DATABASE_URL=" + url(user, database), "POSTHORN_ADMIN_DATABASE_URL=" + admin, "POSTHORN_MASTER_KEY=" + masterKey}, commands)
		}
		if said, err := up("posthorn", "posthorn", "", "posthorn migrate up"); err != nil {
			t.Fatal(said)
		}
		// Before version 16 the second one grants the roles to itself.
		if said, err := up("staging", "staging", "", "posthorn migrate up"); err != nil {
			if !strings.Contains(said, "posthorn_tenant") || !strings.Contains(said, "posthorn migrate roles") {
				t.Errorf("%s: it is told %s", bin, said)
			}
			// An administrator who didn't create the roles is told what it needs, and that is enough.
			said, err := up("staging", "staging", url("master", "postgres"), "posthorn migrate roles")
			line := regexp.MustCompile(`GRANT .*posthorn_worker, staging TO "master" WITH ADMIN OPTION`).FindString(said)
			if err == nil || line == "" {
				t.Fatalf("%s: another administrator is told %v %s", bin, err, said)
			}
			execute(t, url("dba", "postgres"), line)
			if said, err := up("staging", "staging", url("master", "postgres"), "posthorn migrate roles && posthorn migrate up"); err != nil {
				t.Errorf("%s: %s", bin, said)
			}
		}
		if said, err := up("dba", "third", "", "posthorn migrate up"); err != nil {
			t.Errorf("%s: an administrator's migrate up: %s", bin, said)
		}
		for _, name := range []string{"posthorn", "staging", "third"} {
			if said, err := up(name, name, "", "posthorn migrate status && posthorn tenant create --name Acme"); err != nil {
				t.Errorf("%s: %s: %s", bin, name, said)
			}
		}
	})
}

func TestADatabaseThatIsNotUTF8IsRefusedWithTheLineThatRepairsIt(t *testing.T) {
	t.Parallel()
	bin := installations(t)[0]
	url := cluster(t, bin, "dba")
	create := func(name, encoding string) string {
		return fmt.Sprintf("CREATE DATABASE %s OWNER posthorn TEMPLATE template0 ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C'", name, encoding)
	}
	execute(t, url("dba", "postgres"), "CREATE ROLE posthorn LOGIN CREATEROLE", create("latin", "LATIN1"), create("ascii", "SQL_ASCII"))
	dir := dataDir(t)
	for _, database := range []string{"latin", "ascii"} {
		for _, command := range []string{"posthorn migrate up", "posthorn serve"} {
			said, err := shell(t, dir, bin, []string{"POSTHORN_DATABASE_URL=" + url("posthorn", database), "POSTHORN_MASTER_KEY=" + masterKey, "POSTHORN_ADDR=127.0.0.1:0", "POSTHORN_METRICS_ADDR=off"}, command)
			_, line, found := strings.Cut(said, "CREATE DATABASE ")
			if err == nil || !found || !strings.Contains(said, "UTF8") {
				t.Fatalf("%s, %s: %v %s", database, command, err, said)
			}
			line, _, _ = strings.Cut(line, "\n")
			name, _, _ := strings.Cut(line, " OWNER")
			execute(t, url("dba", "postgres"), "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+strings.TrimSuffix(line, `"}`))
		}
	}
	if said, err := shell(t, dir, bin, []string{"POSTHORN_DATABASE_URL=" + url("posthorn", "posthorn_utf8"), "POSTHORN_MASTER_KEY=" + masterKey}, "posthorn migrate up"); err != nil {
		t.Errorf("the database of the line: %s", said)
	}
}

func TestAServerWithoutAFreeConnectionIsNamedWithItsRemedy(t *testing.T) {
	t.Parallel()
	bin := installations(t)[0]
	url := cluster(t, bin, "dba", "max_connections=6", "superuser_reserved_connections=1", "max_wal_senders=0")
	execute(t, url("dba", "postgres"), "CREATE ROLE posthorn LOGIN CREATEROLE", "CREATE DATABASE posthorn OWNER posthorn")
	for full := false; !full; {
		conn, err := pgx.Connect(t.Context(), url("posthorn", "posthorn"))
		if err == nil {
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			continue
		}
		var server *pgconn.PgError
		if full = errors.As(err, &server) && server.Code == "53300"; !full {
			t.Fatal(err)
		}
	}
	environ := []string{"POSTHORN_DATABASE_URL=" + url("posthorn", "posthorn"), "POSTHORN_MASTER_KEY=" + masterKey}
	said, err := shell(t, dataDir(t), bin, environ, "posthorn migrate status")
	if err == nil || !strings.Contains(said, "max_connections") || strings.Contains(said, "in a few seconds") {
		t.Errorf("it says %v %s", err, said)
	}
}
