package endpoint

import (
	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// CheckBroker checks the connection of a broker's kind alone, and returns settings with it as it is stored and with its
// URL. The connection has the kind's type.
func CheckBroker(k Kind, connection Connection, policy egress.Policy) (Settings, []fault.Field) {
	s := Settings{Kind: k, Connection: connection.Clone()}
	var c collector
	c.travel(&s, policy)
	return s, c.fields
}
