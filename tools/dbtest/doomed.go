package dbtest

import (
	"errors"
	"fmt"
	"sync"
)

// dropAt is how many databases of ended tests wait before they are dropped together. Each DROP DATABASE makes a
// checkpoint, which writes what all databases of the server have changed since the last one: with a drop after each
// test, every test would wait for the pages of the others. Many more would fill the disk: each has about 12 MB.
const dropAt = 16

// doomed are databases of this process that no test uses any more.
var doomed doomedDatabases

type doomedDatabases struct {
	mu    sync.Mutex
	names map[server][]string
}

// add marks a database to be dropped, and drops all marked ones if there are more than dropAt.
func (d *doomedDatabases) add(on server, name string, most int) error {
	d.mu.Lock()
	if d.names == nil {
		d.names = map[server][]string{}
	}
	d.names[on] = append(d.names[on], name)
	d.mu.Unlock()
	return d.drop(most)
}

// drop drops all of a server if more than this many wait.
func (d *doomedDatabases) drop(most int) (err error) {
	d.mu.Lock()
	ready := map[server][]string{}
	for on, names := range d.names {
		if len(names) > most {
			ready[on] = names
			delete(d.names, on)
		}
	}
	d.mu.Unlock()
	for on, names := range ready {
		statements := make([]string, len(names))
		for i, name := range names {
			statements[i] = fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", name)
		}
		err = errors.Join(err, on.execute(statements...))
	}
	return err
}
