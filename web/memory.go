package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Little memory is live, and garbage comes fast: collecting only when the heap has grown fourfold costs a third of the
// work. A limit bounds the heap. It must never be near the live heap, or the collector would run all the time: the
// limit grows with the use, and falls after a peak. A process that makes garbage slowly gets a lower limit: there more
// collections cost nothing, and the garbage of a burst of connections is collected before the next burst.
const (
	collectAt        = 300 // percent of growth
	quietMemoryLimit = 72 << 20
	busyMemoryLimit  = 110 << 20
	// With thousands of endpoints more is live, and under that limit a busy process spends a third of its CPU on
	// collecting. It gets four times the live heap, up to this bound.
	fullMemoryLimit = 160 << 20
	memoryEvery     = 500 * time.Millisecond
	// A process is busy once it collects so often, look after look.
	busyCollections = 3 // in memoryEvery: 6 a second
	busyLooks       = 4
	// A process that collects rarely collects this much at once.
	quietGarbage = 8 << 20
	// A process without work collects no garbage for two minutes, and returns nothing to the system before. An idle one
	// with more than this collects and returns after 10 s, and then every 30 s, since live memory can become garbage at
	// any time.
	idleKeeps   = 32 << 20
	memoryIdle  = 10 * time.Second
	memoryAgain = 30 * time.Second
)

// keepMemory holds the process's memory near what it uses, until the context ends. GOMEMLIMIT or GOGC say otherwise.
func keepMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(quietMemoryLimit)
	k := memoryKeeper{limit: quietMemoryLimit, returns: time.Now().Add(memoryIdle)}
	for {
		select {
		case <-time.After(memoryEvery):
			k.look(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// memoryKeeper is what keepMemory remembers from one look to the next.
type memoryKeeper struct {
	limit       int64
	busy        int // for how many looks in a row it has collected often
	collections uint64
	returns     time.Time // when it returns memory, if it has no work until then
}

// look adjusts the limit to the use, and returns memory after a peak.
func (k *memoryKeeper) look(now time.Time) {
	memory := memoryUse()
	collected := memory.collections - k.collections
	if collected == 0 && memory.garbage > quietGarbage {
		runtime.GC()
		memory = memoryUse()
		k.collections = memory.collections // a little garbage is no work
	}
	switch {
	case memory.collections != k.collections:
		k.collections, k.returns = memory.collections, now.Add(memoryIdle)
	case !now.Before(k.returns) && memory.held > idleKeeps:
		runtime.GC() // pools let go of what they hold in the second collection
		debug.FreeOSMemory()
		memory = memoryUse()
		k.collections, k.returns = memory.collections, now.Add(memoryAgain)
	}
	if k.busy++; collected < busyCollections {
		k.busy = 0
	}
	next := memoryLimit(k.limit, memory.live, k.busy >= busyLooks, collected == 0)
	if next != k.limit {
		debug.SetMemoryLimit(next)
	}
	k.limit = next
}

// memoryLimit is the limit that follows another, where this much is live. busy: collections are frequent; calm: there
// was none since the last look. The limit grows before collecting is much of what a busy process does, and before the
// use reaches it. It falls when the use is a fifth of it, or in a calm process, so that it does not swing.
func memoryLimit(limit, live int64, busy, calm bool) int64 {
	switch {
	case busy && live > limit*6/10, live > limit*85/100:
		return max(live*2, busyMemoryLimit, min(live*4, fullMemoryLimit))
	case busy:
		return max(limit, busyMemoryLimit, min(live*4, fullMemoryLimit))
	case live < limit/5:
		return max(quietMemoryLimit, live*2)
	case calm && live < quietMemoryLimit*7/10:
		return quietMemoryLimit
	}
	return limit
}

// use is what the runtime says of its memory.
type use struct {
	live        int64 // after the last collection, and stacks
	held        int64 // taken from the system and not returned
	garbage     int64 // allocated since the last collection, most of it garbage by now
	collections uint64
}

func memoryUse() use {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	read := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return use{
		live:        read(0) + read(1),
		held:        read(3) - read(4),
		garbage:     read(5) - read(0),
		collections: samples[2].Value.Uint64(),
	}
}
