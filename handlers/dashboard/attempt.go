package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// bodyShown is how many bytes of a body a page shows. The whole body can be downloaded.
const bodyShown = 8 << 10

// attemptDetail is an attempt with its response, as far as the actor can read it.
func attemptDetail(d show.Delivery, t show.Attempt, payloads bool) pages.AttemptDetail {
	v := pages.AttemptDetail{Attempt: t, Hidden: !payloads, Record: d.Endpoint.Kind.Broker()}
	switch {
	case v.Hidden:
		v.Attempt.Headers, v.Attempt.Body = "", nil
	case len(t.Body) > 0:
		v.Response = excerpt(t.Body, len(t.Body))
	case t.Result.Failure != delivery.FailNone:
		v.Response.Gone = "There was no response."
	default:
		v.Response.Gone = "The response had no body."
	}
	return v
}

// fillRequest adds the request of an attempt.
func fillRequest(v *pages.AttemptDetail, r show.Request, d show.Delivery) {
	v.Request = r
	if r.Body == nil {
		v.Body.Gone = "The event's data has been deleted, so the body can't be shown."
		return
	}
	v.Body = excerpt(r.Body, bodyShown)
	if r.Batch == nil || r.Batch.Events == 1 { // the signature is that of the whole body
		v.Curl = command(*v, r.Body, id.Delivery.Format(d.ID))
	}
}

// command is the request as a command. A long body is a file with its exact bytes.
func command(d pages.AttemptDetail, body []byte, deliveryID string) string {
	if len(body) <= bodyShown {
		return signature.Curl(d.Request.HTTPMethod(), d.URL, d.Request.Headers, body)
	}
	return strings.TrimSuffix(signature.Curl(d.Request.HTTPMethod(), d.URL, d.Request.Headers, nil), "--data-raw ''") + "--data-binary '@" + deliveryID + ".json'"
}

// excerpt is the start of a body as text: bytes that are not UTF-8 become the replacement character.
func excerpt(body []byte, most int) pages.Excerpt {
	e, whole := pages.Excerpt{Size: len(body)}, body
	if len(body) > most {
		for most > 0 && !utf8.RuneStart(body[most]) {
			most--
		}
		e.Note = fmt.Sprintf("the first %s of %s", components.Bytes(int64(most)), components.Bytes(int64(len(body))))
		body = body[:most]
	}
	e.JSON = json.Valid(whole)
	e.Text = strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	var nice bytes.Buffer
	if e.Note == "" && json.Indent(&nice, []byte(e.Text), "", "  ") == nil && nice.String() != e.Text && nice.Len() <= 4*most {
		e.Nice = nice.String()
	}
	return e
}

var errPayloads = fault.New(fault.Forbidden, "role_missing", "Your role in this tenant can't see payloads. Ask an owner or admin of the tenant.")

// downloadBody sends the exact bytes that each attempt sends.
func (a *dashboard) downloadBody(c *handlers.Call) error {
	deliveryID := c.PathID("delivery_id")
	var body []byte
	err := c.Tx(func(q *db.Tx) error {
		d, err := deliveries.Read(c.Ctx(), q, c.Actor.Tenant, deliveryID)
		if err != nil {
			return err
		}
		if payloads, err := a.readsPayloads(c, q); err != nil || !payloads {
			return cmp.Or(err, error(errPayloads))
		}
		last, err := deliveries.Attempts(c.Ctx(), q, d, 1)
		if err != nil {
			return err
		}
		sent, err := deliveries.ReadSent(c.Ctx(), q, a.Keys, queue.Links{BaseURL: a.BaseURL, Keys: a.Keys}, d)
		body = sent.Body(last...)
		return err
	})
	if err == nil && body == nil {
		err = delivery.ErrEventExpired
	}
	if err != nil {
		return err
	}
	return download(c, id.Delivery.Format(deliveryID)+".json", body)
}

// download sends a file that no browser displays.
func download(c *handlers.Call, name string, body []byte) error {
	c.Writer.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	c.Data(http.StatusOK, "application/json", body)
	return nil
}
