package api_test

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// instant stores nothing, so that the benchmark measures the API without the store.
type instant struct{}

func (instant) Emit(_ context.Context, _ id.UUID, items []emit.Item) []emit.Result {
	return []emit.Result{{ID: db.NewID(), Deliveries: 1}}
}

func (instant) EmitFirst(context.Context, func(*db.Tx) (id.UUID, bool, error), emit.Item) (emit.Result, bool) {
	return emit.Result{ID: db.NewID()}, true
}

type oneKey struct{}

func (oneKey) FindKey(context.Context, [sha256.Size]byte) (accounts.Credential, error) {
	return accounts.Credential{
		Key:       id.UUID{1},
		Tenant:    id.UUID{2},
		Scopes:    []string{"events:write"},
		State:     account.TenantActive,
		ExpiresAt: time.Now().Add(time.Hour),
	}, nil
}

func (oneKey) TenantState(context.Context, id.UUID) (account.TenantState, error) {
	return account.TenantActive, nil
}
func (oneKey) FindTenant(context.Context, string) (id.UUID, error) { return id.UUID{2}, nil }
func (oneKey) FindEndpoint(context.Context, id.UUID, string) (id.UUID, error) {
	return id.UUID{3}, nil
}
func (oneKey) KeysRevision(context.Context) (int64, error) { return 1, nil }
func (oneKey) TouchKeys(context.Context, []id.UUID) error  { return nil }

// nowhere is a response that nobody reads.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

// BenchmarkEmitEvent is one POST /events without net/http and without the store. On the hot path, 5,000 of them a
// second share two cores with everything else.
func BenchmarkEmitEvent(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	auth := handlers.NewAuthenticator(oneKey{}, log, time.Now)
	ctx, cancel := context.WithCancel(b.Context())
	go func() { _ = auth.Run(ctx) }()
	defer cancel()
	time.Sleep(50 * time.Millisecond) // the first poll
	kit := handlers.New(handlers.Config{
		Authenticator: auth,
		Log:           log,
		Now:           time.Now,
		KeyRate:       handlers.Rate{PerSecond: 100_000_000},
	})
	engine := kit.NewEngine()
	kit.Mount(engine, api.Routes(api.Deps{Emitter: instant{}, Log: log, Now: time.Now}))
	body := `{"type":"order.completed","data":{"id":"ord_1234567890","total":1234,"currency":"EUR","items":[{"sku":"a","n":1},{"sku":"b","n":2}],"note":"` + strings.Repeat("x", 300) + `"}}`
	r, err := http.NewRequestWithContext(ctx, "POST", "/api/v1/events", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr = "127.0.0.1:1234"
	r.ContentLength = int64(len(body))
	r.Header.Set("Authorization", "Bearer phk_"+strings.Repeat("a", 49))
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(strings.NewReader(body))
		engine.ServeHTTP(nowhere{http.Header{}}, r)
	}
}
