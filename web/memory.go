package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What is live is little, and garbage comes fast: collecting only when the heap has grown fourfold costs a third of the
// work. A limit keeps that from showing in memory. It must never be near what is really in use, or the collector would do
// nothing but collect: the limit grows with the use.
const (
	collectAt        = 300 // per cent of growth
	firstMemoryLimit = 110 << 20
	memoryEvery      = 2 * time.Second
)

// keepMemory holds the process's memory near what it uses, until the context ends. GOMEMLIMIT or GOGC say otherwise.
func keepMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(collectAt)
	limit := int64(firstMemoryLimit)
	debug.SetMemoryLimit(limit)
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for {
		select {
		case <-time.After(memoryEvery):
		case <-ctx.Done():
			return
		}
		metrics.Read(used)
		if live := int64(used[0].Value.Uint64() + used[1].Value.Uint64()); live > limit*6/10 {
			limit = live * 2
			debug.SetMemoryLimit(limit)
		}
	}
}
