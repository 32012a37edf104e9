package lanes

import (
	"maps"

	"posthorn/domain/id"
)

// An event has the version of its tenant's routes that it was stored under, and each change of how an endpoint is sent
// to makes a new version. A lane has a version that its settings are not older than. So an event with a newer one was
// possibly emitted after a change that the lane does not know: the lane starts nothing until it was compared with the
// database. The number is compared when a row is put into memory, and costs nothing else while nothing changes.
//
// One change makes all lanes of its tenant compare, each when it gets its next event. Lanes that ask at the same time
// are compared by one statement, and those without a change only note the version.

// require makes a lane wait until it was compared, because of an event. The caller holds the mutex.
func (d *Dispatcher) require(l *Lane, version int64) {
	if version <= l.required {
		return
	}
	l.required = version
	d.behind[l.id] = version
	d.compare(l.id)
}

// isBehind reports whether the lane got an event of a newer version than its settings. The caller holds the mutex.
func (l *Lane) isBehind() bool { return l.required > l.version }

// Behind returns the lanes that wait for a comparison, with the versions that they need. A caller takes it before it
// reads what it compares: what it reads then is not older than these versions.
func (d *Dispatcher) Behind() map[id.UUID]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.behind)
}

// caughtUp notes that a lane's settings are not older than a version. The caller holds the mutex.
func (d *Dispatcher) caughtUp(l *Lane, version int64) {
	l.version = max(l.version, version)
	if !l.isBehind() {
		delete(d.behind, l.id)
		d.runnable(l)
	}
}
