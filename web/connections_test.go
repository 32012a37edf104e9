package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"posthorn/db"
)

// The page for sizing max_connections has the numbers of the pools, and of the connections that LISTEN.
func TestTheConnectionsOfAProcessAreThoseOfTheSizingPage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../docs/ops/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	most := func(parts Parts) (all, listening int) {
		t.Helper()
		p := program(t, newDatabase(t), parts)
		for _, pool := range p.pools {
			all += int(pool.Pool().Config().MaxConns)
		}
		if parts.Worker {
			until(t, "the worker listens", func() bool {
				return (&someHome{Program: p}).count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'posthorn listen'") == 3
			})
			listening = 3
		}
		return all + listening + 1, listening // one is the readiness check's
	}
	web, _ := most(Parts{Web: true})
	worker, listening := most(Parts{Worker: true})
	both, _ := most(Parts{Web: true, Worker: true})
	want := fmt.Sprintf("at most %d per web process, %d per worker (%d of them for LISTEN), %d for a process that does both", web, worker, listening, both)
	if both != db.ProcessConnections {
		t.Errorf("errors name %d connections of a process, and it opens %d", db.ProcessConnections, both)
	}
	if !strings.Contains(string(source), want) {
		t.Errorf("docs/ops/sizing.md does not say %q", want)
	}
}
