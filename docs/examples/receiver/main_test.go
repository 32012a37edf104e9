package main

import (
	"bytes"
	"encoding/base64"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var secret = "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))

func send(t *testing.T, handler http.Handler, signWith, id, body string) *httptest.ResponseRecorder {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(signWith)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := signer.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewBufferString(body))
	request.Header.Set("webhook-id", id)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("webhook-signature", signature)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

func TestAnEventIsActedOnOnce(t *testing.T) {
	t.Parallel()
	var got []webhook
	rc, err := newReceiver(secret, func(event webhook) { got = append(got, event) })
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"id":"evt_1","type":"order.completed","timestamp":"2026-11-21T10:00:00Z","data":{"total":12345678901234567890}}`
	for range 2 {
		if answer := send(t, rc, secret, "evt_1", body); answer.Code != http.StatusNoContent {
			t.Fatalf("answered %d %s", answer.Code, answer.Body)
		}
	}
	if len(got) != 1 || string(got[0].Data) != `{"total":12345678901234567890}` {
		t.Fatalf("acted on %v", got)
	}
}

func TestAForgedEventIsRefused(t *testing.T) {
	t.Parallel()
	rc, err := newReceiver(secret, func(event webhook) { t.Errorf("acted on %v", event) })
	if err != nil {
		t.Fatal(err)
	}
	other := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))
	if answer := send(t, rc, other, "evt_1", `{"id":"evt_1","type":"order.completed"}`); answer.Code != http.StatusUnauthorized {
		t.Fatalf("answered %d", answer.Code)
	}
}

func TestTheChallengeComesBack(t *testing.T) {
	t.Parallel()
	rc, err := newReceiver(secret, func(event webhook) { t.Errorf("acted on %v", event) })
	if err != nil {
		t.Fatal(err)
	}
	answer := send(t, rc, secret, "evt_2", `{"id":"evt_2","type":"endpoint.verification","data":{"challenge":"c1"}}`)
	if answer.Code != http.StatusOK || answer.Body.String() != `{"challenge":"c1"}` {
		t.Fatalf("answered %d %s", answer.Code, answer.Body)
	}
}

func TestAReceiverWithoutASecretDoesNotStart(t *testing.T) {
	t.Parallel()
	if _, err := newReceiver("", nil); err == nil {
		t.Fatal("an empty secret was accepted")
	}
}

func TestAPortInUseIsAnErrorAndNoPromise(t *testing.T) {
	t.Parallel()
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	var said bytes.Buffer
	if err := serve(taken.Listener.Addr().String(), http.NotFoundHandler(), log.New(&said, "", 0)); err == nil || said.Len() > 0 {
		t.Errorf("err %v, log %q", err, &said)
	}
}
