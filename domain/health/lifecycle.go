package health

import "posthorn/domain/endpoint"

// Holds reports whether deliveries to an endpoint in a state wait as held.
func Holds(s endpoint.Status) bool { return s != endpoint.Active }
