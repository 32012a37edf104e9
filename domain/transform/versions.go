package transform

import "sync"

// Version is what an endpoint's transformation was from one version of its tenant's routes on.
type Version struct {
	From int64
	T    *Transformation // nil: none

	once     sync.Once
	compiled *Compiled
	err      error
}

// compile prepares the transformation when something first needs it.
func (v *Version) compile() (*Compiled, error) {
	v.once.Do(func() { v.compiled, v.err = v.T.compile() })
	return v.compiled, v.err
}

// Versions are the transformations of an endpoint over time, oldest first. None: it never had one. They are safe for
// concurrent use.
type Versions []*Version

// First is the version of a delivery of its own version of the routes; -1: it is from before the first, when there was
// none.
func (v Versions) First(own int64) int {
	i := len(v) - 1
	for i >= 0 && v[i].From > own {
		i--
	}
	return i
}

// Render makes the content of a delivery's requests: by the first version from its own on that can be applied to the
// event. So an expression that fails holds a delivery until an edit that works for it, and what was once sent is sent
// by the same version again, whatever is edited later, and by every process. from is that version; 0: none, the event
// is rendered as its format says and out is empty. The error is a *Problem, of the newest version.
func (v Versions) Render(own int64, in Input) (out Output, from int64, err error) {
	at := v.First(own)
	if at < 0 {
		return out, 0, nil
	}
	for ; at < len(v); at++ {
		if v[at].T == nil {
			return Output{}, 0, nil
		}
		var c *Compiled
		if c, err = v[at].compile(); err != nil {
			err = &Problem{}
			continue
		}
		if out, err = c.Render(in); err == nil {
			return out, v[at].From, nil
		}
	}
	return Output{}, 0, err
}

// At is the transformation of a version by its number; nil: there is none.
func (v Versions) At(from int64) *Version {
	for _, x := range v {
		if x.From == from {
			return x
		}
	}
	return nil
}

// RenderAt makes the content by one version, as it was sent.
func (v Versions) RenderAt(from int64, in Input) (Output, bool) {
	x := v.At(from)
	if x == nil || x.T == nil {
		return Output{}, false
	}
	c, err := x.compile()
	if err != nil {
		return Output{}, false
	}
	out, err := c.Render(in)
	return out, err == nil
}

// Try applies a transformation that is possibly not saved to an event. The error is a *fault.Error of the
// transformation, or a *Problem of the event.
func Try(t *Transformation, in Input) (Output, error) {
	c, err := t.compile()
	if err != nil {
		return Output{}, err
	}
	return c.Render(in)
}
