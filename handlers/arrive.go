package handlers

import (
	"bytes"
	"net/http"
	"time"

	"posthorn/domain/id"
)

// arrivedBody is a body that has arrived whole and is counted.
type arrivedBody struct{ bytes.Reader }

func (*arrivedBody) Close() error { return nil }

func newArrived(text []byte) *arrivedBody {
	b := &arrivedBody{}
	b.Reset(text)
	return b
}

// Arrive reads the whole body of a request into memory, before anything is taken for the request that others need. The
// bytes count as those of a sender; the zero id is a stranger, who counts by network. The returned function releases
// them. most bounds the body, in bytes.
func (k *Kit) Arrive(w http.ResponseWriter, r *http.Request, who id.UUID, most int64) (release func(), err error) {
	body := &countedBody{ReadCloser: r.Body, in: k.bodies, who: who}
	if _, arrived := r.Body.(*arrivedBody); arrived || r.Body == nil || r.Body == http.NoBody {
		return func() {}, nil
	}
	if who.IsZero() {
		if err := k.countAnonymous(w, body, k.proxies.client(r)); err != nil {
			return nil, err
		}
	}
	text, err := readBody(w, r, body, most)
	if err != nil {
		body.release()
		return nil, err
	}
	// The deadline was for the body. The response can be a stream.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	r.Body, r.ContentLength, r.TransferEncoding = newArrived(text), int64(len(text)), nil
	return body.release, nil
}
