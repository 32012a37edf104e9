package send

import (
	"net/http"
	"net/url"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/signature"
)

// SetBot sets the platform's own signature of every request; nil: there is none.
func (s *Sender) SetBot(b *httpsig.Bot) { s.bot.Store(b) }

// publicHeaders are the headers of the signatures of a POST that anybody can check: the tenant's and the platform's.
func (s *Sender) publicHeaders(to *Destination, body []byte, contentType string, format []signature.Header, now time.Time) []signature.Header {
	bot := s.bot.Load()
	if !to.public.Message() && bot == nil || to.taken {
		return nil
	}
	address, is := to.to.(*httpAddress)
	if !is || to.kind != endpoint.HTTP {
		return nil
	}
	r := httpsig.Request{
		Method:  http.MethodPost,
		URL:     address.url,
		Body:    body,
		Type:    contentType,
		Headers: format,
		ID:      to.dedupe,
		At:      now,
	}
	var signatures []httpsig.Signature
	var headers []signature.Header
	if to.public.Message() {
		if signer := httpsig.Current(to.signers, now); signer != nil {
			signed, digest := signer.Webhook(r)
			signatures = append(signatures, signed)
			headers = append(headers, signature.Header{Name: httpsig.DigestField, Value: digest})
		}
	}
	if signed, agent, is := bot.Sign(r); is {
		signatures = append(signatures, signed)
		headers = append(headers, signature.Header{Name: httpsig.AgentField, Value: agent})
	}
	if len(signatures) == 0 {
		return nil
	}
	return append(headers, httpsig.Headers(signatures)...)
}

// botHeaders are the headers of the platform's signature of a GET.
func (s *Sender) botHeaders(to *Destination, u *url.URL, now time.Time) []signature.Header {
	if to.taken {
		return nil
	}
	signed, agent, is := s.bot.Load().Sign(httpsig.Request{Method: http.MethodGet, URL: u, At: now})
	if !is {
		return nil
	}
	return append(httpsig.Headers([]httpsig.Signature{signed}), signature.Header{Name: httpsig.AgentField, Value: agent})
}
