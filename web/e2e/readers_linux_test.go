//go:build e2e && linux

package e2e

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/tools/need"
)

// TestAThousandIdleReadersOfAFeedCostLittle: 500 streams and 500 long polls wait at one process. They cost less than
// 100 MiB and 5 % of a core, and each gets the next event.
func TestAThousandIdleReadersOfAFeedCostLittle(t *testing.T) {
	// Not parallel: it compares what a process uses, and the events of other tests would be in it.
	need.Linux(t)
	const readers = 1000
	w := newWorld(t, nil)
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	var feed struct {
		ID string `json:"id"`
	}
	w.manage("POST", "/endpoints", map[string]string{"kind": "feed"}, &feed)
	var begin struct {
		Cursor string `json:"cursor"`
	}
	w.emit(event("order.completed", 0))
	eventually(t, patience, "the log begins", func() bool {
		w.manage("GET", "/feeds/"+feed.ID+"?start=oldest", nil, &begin)
		return strings.HasPrefix(begin.Cursor, "b-")
	})
	idle := func(lasts time.Duration) (share float64) {
		before := used(t, web)
		time.Sleep(lasts)
		return float64(used(t, web)-before) / float64(lasts)
	}
	alone, empty := idle(5*time.Second), resident(t, web.cmd.Process.Pid)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	many := &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: readers}}
	page := web.url + "/api/v1/feeds/" + feed.ID + "?wait=25&cursor=" + begin.Cursor
	var waiting, got atomic.Int64
	var group sync.WaitGroup
	for i := range readers {
		group.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				if w.gets(ctx, many, page, i%2 == 0, func() {
					if first {
						waiting.Add(1)
					}
				}) {
					got.Add(1)
					return
				}
			}
		})
	}
	eventually(t, patience, "all readers wait", func() bool { return waiting.Load() == readers })
	time.Sleep(5 * time.Second) // what they cost once is over
	share, memory := idle(30*time.Second)-alone, resident(t, web.cmd.Process.Pid)-empty
	t.Logf("%d readers: %.1f %% of a core, %d MiB; without them %.1f %%, %d MiB", readers, 100*share, memory>>20, 100*alone, empty>>20)
	if share > 0.05 || memory > 100<<20 {
		t.Errorf("%d readers that wait cost %.1f %% of a core and %d MiB", readers, 100*share, memory>>20)
	}
	w.emit(event("order.completed", 1))
	eventually(t, patience, "each reader has the event", func() bool { return got.Load() == readers })
	stop()
	group.Wait()
}

// gets reads behind a cursor, as a stream or by a long poll, and reports whether an event came.
func (w *world) gets(ctx context.Context, client *http.Client, url string, streams bool, started func()) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	if streams {
		r.Header.Set("Accept", "text/event-stream")
	} else {
		started() // it has no sign of its own that it waits
	}
	res, err := client.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	if streams {
		started()
	}
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		if strings.Contains(in.Text(), `"event_id"`) {
			return true
		}
	}
	return false
}
