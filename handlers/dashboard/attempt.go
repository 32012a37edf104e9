package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// bodyShown is how many bytes of a body a page shows. The whole body can be downloaded.
const bodyShown = 8 << 10

func maskedURL(raw string) string { return egress.Mask(raw) }

// attemptDetail rebuilds an attempt's request by the rules that rendered it, and shows the stored response.
func (k deliveryData) attemptDetail(t sql.Attempt, deliveryID string) pages.AttemptDetail {
	kind, timeout := endpoint.Kind(k.endpoint.Kind), time.Duration(k.endpoint.TimeoutSeconds)*time.Second
	said := diagnosis.Attempt(kind, delivery.Result{Failure: t.Failure, Status: int(t.Status)}, timeout)
	d := pages.AttemptDetail{
		AttemptRow: attemptRow(kind, t, 0), Detail: said.Detail, Fix: said.Fix, Hidden: !k.payloads, URL: t.URL,
		Record: kind == endpoint.Kafka, NotRendered: t.Failure == delivery.FailInternal,
		Unsent: t.Failure == delivery.FailDNS || t.Failure == delivery.FailConnect || t.Failure == delivery.FailTLS ||
			t.Failure == delivery.FailBlocked,
	}
	if t.Error != nil {
		d.Error = *t.Error
	}
	if d.Hidden {
		return d
	}
	if t.ResponseHeaders != nil {
		d.AnswerHead = *t.ResponseHeaders
	}
	switch {
	case len(t.ResponseExcerpt) > 0:
		d.Answer = excerpt(t.ResponseExcerpt, len(t.ResponseExcerpt))
	case t.Failure != delivery.FailNone:
		d.Answer.Gone = "There was no response."
	default:
		d.Answer.Gone = "The response had no body."
	}
	wire := signature.ParseWire(t.Format, k.endpoint.Prefix)
	m := queue.SentMessage(&k.event, k.Delivery, wire)
	d.Headers = queue.SentHeaders(k.settings, wire, m, k.Delivery, t)
	if d.Record && k.event.Key != nil {
		d.Key = *k.event.Key
	}
	d.Changed = k.endpoint.UpdatedAt.After(t.CreatedAt)
	if k.event.Data == nil {
		d.Body.Gone = "The event's data has been deleted, so the body can't be shown."
		return d
	}
	body := signature.AppendBody(nil, wire.Format, m)
	d.Body = excerpt(body, bodyShown)
	d.Curl = command(d, body, deliveryID)
	return d
}

// command is the request as a command. A long body is a file with its exact bytes.
func command(d pages.AttemptDetail, body []byte, deliveryID string) string {
	if len(body) <= bodyShown {
		return signature.Curl(d.URL, d.Headers, body)
	}
	return strings.TrimSuffix(signature.Curl(d.URL, d.Headers, nil), "--data-raw ''") + "--data-binary '@" + deliveryID + ".json'"
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
	deliveryID, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	k, err := a.readDeliveryData(c, deliveryID)
	switch {
	case err != nil:
		return err
	case !k.payloads:
		return errPayloads
	case k.event.Data == nil:
		return delivery.ErrEventExpired
	}
	wire := endpoints.Wire(k.endpoint)
	if n := len(k.attempts); n > 0 {
		wire = signature.ParseWire(k.attempts[n-1].Format, wire.Prefix)
	}
	m := queue.SentMessage(&k.event, k.Delivery, wire)
	return download(c, id.Delivery.Format(deliveryID)+".json", signature.AppendBody(nil, wire.Format, m))
}

// download sends a file that no browser displays.
func download(c *handlers.Call, name string, body []byte) error {
	c.Writer.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	c.Data(http.StatusOK, "application/json", body)
	return nil
}
