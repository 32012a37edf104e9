package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Listening is what a program does with the deliveries of a listener ([Client.CreateListener]).
type Listening struct {
	// Handle processes a delivery and returns its result. The SDK fills in delivery_id and attempt_id. It runs for
	// one delivery at a time.
	Handle func(context.Context, Handout) ListenerAnswer
	// Away is called once when the server becomes unreachable, and Back when it is reachable again. Both can be nil.
	Away func(error)
	Back func()
}

// Reasons why a listener ends before its context.
var (
	ErrListenerGone      = errors.New("posthorn: the listener was deleted")
	ErrListenedElsewhere = errors.New("posthorn: another program has started to listen there")
)

// After this silence a stream counts as broken: the server sends something every 15 seconds.
const streamSilence = 45 * time.Second

// Listen reads a listener's deliveries from its stream, handles each one once, and reports its result, until the
// context ends: then it returns nil. It waits for a server that restarts or is unavailable. It skips nothing and
// handles nothing twice.
func (c *Client) Listen(ctx context.Context, endpointID string, l Listening) error {
	s := &listening{Listening: l, client: c, endpoint: endpointID}
	for try := 0; ; try++ {
		started, err := s.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // the normal end
		case started:
			try = 0
		}
		if err != nil && !s.waitable(err) {
			return err
		}
		if !c.wait(ctx, backoff(try, 5*time.Second)) {
			return nil
		}
	}
}

// listening is one program at a listener.
type listening struct {
	Listening
	client   *Client
	endpoint string
	last     string // number of the last handled delivery
	away     bool
}

// stream handles the deliveries of one stream. began says that the server accepted the stream.
func (s *listening) stream(ctx context.Context) (started bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(streamSilence, cancel)
	defer silence.Stop()
	params := StreamListenerParams{}
	if s.last != "" {
		params.LastEventID = &s.last
	}
	response, err := s.client.StreamListener(ctx, s.endpoint, params)
	if err != nil {
		return false, listenerGone(err)
	}
	defer func() { _ = response.Body.Close() }()
	s.back()
	in := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		e, err := readEvent(in, func() { silence.Reset(streamSilence) })
		if err != nil {
			return true, nil // streams break; the next one continues where this one ended
		}
		switch e.name {
		case "delivery":
			var h Handout
			if err := json.Unmarshal([]byte(e.data), &h); err != nil {
				return true, fmt.Errorf("posthorn: a delivery is not what the API promises: %w", err)
			}
			s.last = e.id
			silence.Stop() // it can take long
			if err := s.handle(context.WithoutCancel(ctx), ctx, h); err != nil {
				return true, err
			}
			silence.Reset(streamSilence)
		case "listened_elsewhere":
			return true, ErrListenedElsewhere
		case "gone":
			return true, ErrListenerGone
		}
	}
}

// handle handles a delivery and reports the result, however long the server is unavailable, so that a handled
// delivery never comes again. When the context ends, it still reports the last result if the server accepts it
// immediately.
func (s *listening) handle(lasting, ctx context.Context, h Handout) error {
	a := s.Handle(ctx, h)
	a.DeliveryID, a.AttemptID = h.DeliveryID, h.AttemptID
	for try := 0; ; try++ {
		_, err := s.client.AnswerDelivery(lasting, s.endpoint, a)
		var refused *Error
		switch {
		case err == nil:
			s.back()
			return nil
		case errors.As(err, &refused) && refused.Status == http.StatusConflict:
			return nil // it was canceled, or sent out again since
		case !s.waitable(err):
			return listenerGone(err)
		}
		if !s.client.wait(ctx, backoff(try, 5*time.Second)) {
			return nil
		}
	}
}

// waitable reports whether an error says that the server is unavailable for a while.
func (s *listening) waitable(err error) bool {
	var refused *Error
	if errors.As(err, &refused) && refused.Status != http.StatusTooManyRequests &&
		refused.Status < http.StatusInternalServerError ||
		errors.Is(err, ErrListenerGone) || errors.Is(err, ErrListenedElsewhere) {
		return false
	}
	if !s.away && s.Away != nil {
		s.Away(err)
	}
	s.away = true
	return true
}

func (s *listening) back() {
	if s.away && s.Back != nil {
		s.Back()
	}
	s.away = false
}

func listenerGone(err error) error {
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return ErrListenerGone
	}
	return err
}

// serverSent is one event of a stream.
type serverSent struct{ id, name, data string }

// readEvent reads the next event. It calls alive for every line, also for comments.
func readEvent(in *bufio.Reader, alive func()) (serverSent, error) {
	var e serverSent
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return e, fmt.Errorf("posthorn: the stream ended: %w", err)
		}
		alive()
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if e.data != "" {
				e.data += "\n"
			}
			e.data += value
		case "":
			if value == "" && e.name != "" && !strings.HasPrefix(line, ":") {
				return e, nil
			}
		}
	}
}

// Request is the delivery as a request to another address: the same headers and body that an endpoint receives.
func (h Handout) Request(ctx context.Context, address string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(h.Body))
	if err != nil {
		return nil, fmt.Errorf("posthorn: %w", err)
	}
	for _, one := range h.Headers {
		r.Header[one.Name] = []string{one.Value}
	}
	return r, nil
}
