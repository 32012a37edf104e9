package show

import (
	"time"

	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// Consumer reads a feed under a name of its own.
type Consumer struct {
	Name      string
	Key       id.UUID // of its token; zero: it reads with an API key of the tenant
	Cursor    string  // what it acknowledged
	AckedAt   time.Time
	ReadAt    time.Time // zero: never
	CreatedAt time.Time
	Lag       feed.Lag
}
