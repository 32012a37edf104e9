package worker

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/id"
)

// product creates a role of a product that shares the server, and returns the URL of its connections.
func (h *house) product() string {
	h.t.Helper()
	name := "product_" + strings.ToLower(rand.Text())
	owner, err := pgx.Connect(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	do := func(statements ...string) {
		for _, s := range statements {
			if _, err := owner.Exec(context.Background(), strings.ReplaceAll(s, "PRODUCT", name)); err != nil {
				h.t.Errorf("%s: %v", s, err)
			}
		}
	}
	do("CREATE ROLE PRODUCT LOGIN INHERIT PASSWORD 'product'", "GRANT posthorn_emitter TO PRODUCT", "GRANT CREATE, USAGE ON SCHEMA public TO PRODUCT", "GRANT PRODUCT TO CURRENT_USER")
	h.t.Cleanup(func() {
		do("SET ROLE PRODUCT", "DROP OWNED BY PRODUCT", "RESET ROLE", "REVOKE ALL ON SCHEMA public FROM PRODUCT", "DROP ROLE PRODUCT")
		_ = owner.Close(context.Background())
	})
	u, err := url.Parse(h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	u.User = url.UserPassword(name, "product")
	return u.String()
}

// The example of docs/outbox.md: one order is placed and its event delivered; the other is rejected by the product's
// own rule and leaves nothing.
func TestTheExampleOfTheOutboxDoesWhatItSays(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, nil)
	h.worker(true)
	program := filepath.Join(t.TempDir(), "outbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../docs/examples/outbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(os.Environ(), "DATABASE_URL="+h.product(), "TENANT="+id.Tenant.Format(tenant))
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ord_1 was placed, and its event is evt_") || !strings.Contains(string(out), "ord_2 was not placed") {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, 20*time.Second, "the event arrives", func() bool { return len(r.seen()) > 0 })
	if got := string(r.seen()[0].body); !strings.Contains(got, `"data":{"order_id":"ord_1","total":4200}`) || !strings.Contains(string(out), r.seen()[0].id) {
		t.Errorf("%s\n%s", got, out)
	}
	if n := h.count("SELECT count(*) FROM events"); n != 1 {
		t.Errorf("%d events", n)
	}
	// The relay deletes the row in a transaction of its own, after the event is stored.
	eventually(t, 20*time.Second, "the outbox is empty", func() bool { return h.count("SELECT count(*) FROM outbox") == 0 })
}
