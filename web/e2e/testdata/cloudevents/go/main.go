// The receiver reads requests with the official SDK of CloudEvents for Go, as its module has it. Each event is a line of
// JSON; the first line is the receiver's URL.
package main

import (
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

type line struct {
	Path        string          `json:"path"`
	Encoding    string          `json:"encoding"`
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Time        string          `json:"time"`
	Subject     string          `json:"subject"`
	ContentType string          `json:"datacontenttype"`
	Data        json.RawMessage `json:"data"`
	Error       string          `json:"error,omitempty"`
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	write := func(v any) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(v); err != nil {
			log.Fatal(err)
		}
	}
	write("http://" + listener.Addr().String())
	handshake, err := cehttp.New(cehttp.WithDefaultOptionsHandlerFunc([]string{http.MethodPost}, 600, []string{"*"}, false))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			handshake.OptionsHandler(w, r)
			write(line{Path: r.URL.Path, Encoding: "handshake"})
			return
		}
		events, encoding, err := read(r)
		for _, e := range events {
			l := line{r.URL.Path, encoding, e.SpecVersion(), e.ID(), e.Source(), e.Type(), e.Time().UTC().Format("2006-01-02T15:04:05.000Z"), e.Subject(), e.DataContentType(), e.Data(), ""}
			if invalid := e.Validate(); invalid != nil {
				err = invalid
			}
			write(l)
		}
		if err != nil {
			write(line{Path: r.URL.Path, Error: err.Error()})
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})))
}

// read returns the events of a request: one, or those of a batch.
func read(r *http.Request) ([]event.Event, string, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents-batch+json") {
		events, err := cehttp.NewEventsFromHTTPRequest(r)
		return events, "batch", err
	}
	encoding := cehttp.NewMessageFromHttpRequest(r).ReadEncoding().String()
	e, err := cehttp.NewEventFromHTTPRequest(r)
	if err != nil {
		return nil, encoding, err
	}
	return []event.Event{*e}, encoding, nil
}
