package send

import (
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// transform makes a request's content by the endpoint's transformation. used is its version; 0: the event is sent as
// its format says.
func (t *Destination) transform(r *request, m Message, f signature.Format, content signature.Message, link func() string) (used int64, err error) {
	out, used, err := t.transformations.Render(m.Version, transform.Input{
		Message:  content,
		Format:   f,
		Key:      r.key,
		Channels: m.Event.Channels,
		JSON:     t.batch != nil,
		Link:     link,
	})
	if err != nil || used == 0 {
		return 0, err
	}
	r.body, r.contentType, r.method, r.made = out.Body, out.ContentType, out.Method, out.Headers
	if r.body == nil {
		r.body = []byte{}
	}
	return used, nil
}

// wireWith is how a request is rendered by a version of the transformation, as stored with attempts.
func (t *Destination) wireWith(version int64) string {
	w := t.shape
	w.Transformed = version
	return w.String()
}

// NewestTransformation is the newest version of the endpoint's transformation; 0: it never had one.
func (t *Destination) NewestTransformation() int64 {
	if n := len(t.transformations); n > 0 {
		return t.transformations[n-1].From
	}
	return 0
}
