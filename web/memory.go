package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What is live is little, and garbage comes fast: collecting only when the heap has grown fourfold costs a third of the
// work. A limit keeps that from showing in memory. It must never be near what is really in use, or the collector would do
// nothing but collect: the limit grows with the use, and falls with it after a peak.
const (
	collectAt        = 300 // per cent of growth
	firstMemoryLimit = 110 << 20
	memoryEvery      = 500 * time.Millisecond
	// Where collections are rare they cost little: what a burst of connections left is collected before the next burst.
	quietGarbage = 8 << 20
	// A process without work collects no garbage for two minutes, and returns nothing to the system until it does.
	memoryIdle = 10 * time.Second
	idleSlack  = 32 << 20 // what an idle process keeps beyond what it kept last
)

// keepMemory holds the process's memory near what it uses, until the context ends. GOMEMLIMIT or GOGC say otherwise.
func keepMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(firstMemoryLimit)
	k := memoryKeeper{limit: firstMemoryLimit, kept: idleSlack}
	for {
		select {
		case <-time.After(memoryEvery):
			k.look()
		case <-ctx.Done():
			return
		}
	}
}

// memoryKeeper is what keepMemory remembers from one look to the next.
type memoryKeeper struct {
	limit       int64
	kept        int64 // memory held after the last return to the system
	collections uint64
	idle        time.Duration
}

// look adjusts the limit to the use, and returns memory after a peak.
func (k *memoryKeeper) look() {
	now := memoryUse()
	if now.collections == k.collections && now.garbage > quietGarbage {
		runtime.GC()
		now = memoryUse()
	}
	if k.idle += memoryEvery; now.collections != k.collections {
		k.collections, k.idle = now.collections, 0
	}
	if k.idle >= memoryIdle && now.held > k.kept+idleSlack {
		debug.FreeOSMemory()
		now = memoryUse()
		k.collections, k.idle, k.kept = now.collections, 0, now.held
	}
	k.kept = min(k.kept, max(now.held, idleSlack))
	next := memoryLimit(k.limit, now.live)
	if next != k.limit {
		debug.SetMemoryLimit(next)
	}
	k.limit = next
}

// memoryLimit is the limit that follows another, where this much is live. It grows before the use reaches it. It falls
// only when the use is a fifth of it, so that it does not swing.
func memoryLimit(limit, live int64) int64 {
	switch {
	case live > limit*6/10:
		return live * 2
	case live < limit/5:
		return max(firstMemoryLimit, live*2)
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
		live: read(0) + read(1), held: read(3) - read(4), garbage: read(5) - read(0),
		collections: samples[2].Value.Uint64(),
	}
}
