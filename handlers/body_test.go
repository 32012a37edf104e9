package handlers

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"posthorn/domain/id"
)

func TestABodyThatNamesAnotherTypeIsRejected(t *testing.T) {
	t.Parallel()
	k := New(Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	e := k.NewEngine()
	k.Mount(e, []Route{{
		Method: "POST",
		Path:   "/api/x",
		Access: Access{Public: true},
		Handler: func(c *Call) error {
			if err := c.DecodeOptional(&struct{}{}); err != nil {
				return err
			}
			return c.AnswerNothing()
		},
	}})
	for kind, want := range map[string]int{
		"":                                  204,
		"application/json":                  204,
		"application/json; charset=utf-8":   204,
		"Application/JSON":                  204,
		"application/cloudevents+json":      204,
		"text/plain":                        415,
		"application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x":   415,
		"text/html":                         415,
		"application/jsonx":                 415,
		"text/json+json":                    415,
		";":                                 415,
		"application/json, text/plain":      415,
	} {
		for body, want := range map[string]int{"{}": want, "": 204} { // a request without a body needs no type
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/x", strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			w := httptest.NewRecorder()
			if e.ServeHTTP(w, r); w.Code != want || want == 415 && !strings.Contains(w.Body.String(), "content_type_unsupported") {
				t.Errorf("%q with %q: %d %s", kind, body, w.Code, w.Body)
			}
		}
	}
}

func TestABodyIsReadWholeHoweverItArrives(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, length := range []int64{-1, int64(len(text))} {
		for name, r := range map[string]io.Reader{
			"at once":      bytes.NewReader(text),
			"in halves":    iotest.HalfReader(bytes.NewReader(text)),
			"with its end": iotest.DataErrReader(bytes.NewReader(text)),
		} {
			got, err := readAll(r, length)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s, declared %d: %d bytes, %v", name, length, len(got), err)
			}
			if length >= 0 && cap(got) > len(text) {
				t.Errorf("%s: a buffer of %d bytes", name, cap(got))
			}
		}
	}
	if _, err := readAll(bytes.NewReader(text), int64(len(text))+1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a body that ends early: %v", err)
	}
}

func TestBytesInFlightAreBoundedAndReleased(t *testing.T) {
	t.Parallel()
	f, _ := newBodies(Bodies{Process: 100, Sender: 60})
	a, b := id.UUID{1}, id.UUID{2}
	hold := func(who sender, n int64, want error) {
		t.Helper()
		if err := f.Hold(who, n); !errors.Is(err, want) {
			t.Fatalf("%d bytes: %v, want %v", n, err, want)
		}
	}
	hold(a, 60, nil)
	hold(a, 1, errSenderBodies)
	hold(b, 40, nil)
	hold(b, 1, errBodies)
	f.Release(a, 60)
	hold(b, 20, nil)
	hold(b, 1, errSenderBodies)
	f.Release(b, 60)
	if used := f.used.Load(); used != 0 || len(f.by) != 0 {
		t.Errorf("%d bytes are left, of %d senders", used, len(f.by))
	}
}
