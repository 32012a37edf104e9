package show

import "posthorn/domain/transform"

// Tried is what a transformation makes of a past event.
type Tried struct {
	Event   Event
	Before  []byte // the body without the transformation
	Output  transform.Output
	Problem *transform.Problem // nil: it can be applied
}
