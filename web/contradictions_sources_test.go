package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/client"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// How a source is, why it fails, and how many messages wait, are the same on every surface.
func TestNoSurfaceContradictsAnotherAboutSources(t *testing.T) {
	t.Parallel()
	s := scene{youngDay: newYoungDay(t)}
	s.signIn()
	ctx := t.Context()
	sdk, err := client.New(s.program.URL(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	var body client.SourceInput
	text := `{"name":"orders","kind":"sqs","sqs":{"queue_url":"https://sqs.eu-west-1.amazonaws.com/123456789012/orders","access_key_id":"a","secret_access_key":"b"}}`
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	made, err := sdk.CreateSource(ctx, body)
	if err != nil {
		t.Fatal(err)
	}
	uuid, err := id.Source.Parse(made.ID)
	if err != nil {
		t.Fatal(err)
	}
	root := "/t/" + id.Tenant.Format(s.tenant) + "/sources"
	const reason = "the queue returned QueueDoesNotExist"
	for _, tt := range []struct{ status, set, waiting, reason string }{
		{"active", "paused_at = NULL, failing_since = NULL, reason = '', waiting = 1234", "1,234", ""},
		{"failing", "failing_since = now(), reason = '" + reason + "'", "1,234", reason},
		{"paused", "paused_at = now()", "1,234", ""},
	} {
		s.connect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "UPDATE sources SET "+tt.set+" WHERE id = $1", uuid)
			return err
		})
		got, err := sdk.GetSource(ctx, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		waiting, _ := got.Waiting.Get()
		why, _ := got.Reason.Get()
		if string(got.Status) != tt.status || waiting != 1234 || tt.reason != "" && !strings.Contains(why, tt.reason) {
			t.Errorf("the API says %s, %q, and %d wait; want %s", got.Status, why, waiting, tt.status)
		}
		for where, text := range map[string]string{
			"the list":                     s.row(root, "orders"),
			"the page":                     s.text(root + "/" + made.ID),
			"the list on the command line": s.command("sources list"),
			"the command line":             s.command("sources get " + made.ID),
		} {
			if !strings.Contains(strings.ToLower(text), tt.status) || !strings.Contains(strings.ReplaceAll(text, ",", ""), "1234") {
				t.Errorf("%s does not say that it is %s, and that %s wait: %s", where, tt.status, tt.waiting, text)
			}
			if tt.reason != "" && !strings.Contains(where, "list") && !strings.Contains(text, tt.reason) {
				t.Errorf("%s does not say why it fails: %s", where, text)
			}
		}
	}
	letter := s.letter(notice.SourceFailing, id.Tenant.Format(s.tenant), notice.SourceDetails{
		Source: made.ID,
		Name:   "orders",
		Reason: reason,
		Since:  time.Now(),
	})
	if !strings.Contains(letter, "orders") || !strings.Contains(letter, reason) {
		t.Errorf("the mail says %s", letter)
	}
}
