package send

import (
	"sync"

	"posthorn/db/sql"
	"posthorn/domain/signature"
)

// Payload is an event in memory, with its rendered body. The body depends only on the event, the format and its type
// field, so an event for ten endpoints is rendered once.
type Payload struct {
	*sql.Event
	mu        sync.Mutex
	format    signature.Format
	typeField signature.TypeField
	bare      bool
	body      []byte
}

// render returns the body in a format. The caller must not change it. Payload keeps the body of the last format.
func (p *Payload) render(f signature.Format, m signature.Message) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.body == nil || p.format != f || p.typeField != m.TypeField || p.bare != m.Bare {
		p.format, p.typeField, p.bare = f, m.TypeField, m.Bare
		p.body = signature.AppendBody(make([]byte, 0, len(m.Data)+192), f, m)
	}
	return p.body
}
