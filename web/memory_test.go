package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Memory that was in use when an idle process returned what it could is returned too, later.
func TestWhatWasInUseIsReturnedLater(t *testing.T) {
	limit := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(limit) // the other tests share this process
	held := make([]byte, 2*idleKeeps)
	for i := range held {
		held[i] = 1
	}
	k := memoryKeeper{limit: quietMemoryLimit}
	lookAt := func(at time.Duration) {
		runtime.GC() // none of the runtime's own is under way
		k.collections = memoryUse().collections
		k.look(time.Time{}.Add(at))
	}
	lookAt(0)
	if now := memoryUse().held; now < int64(len(held)) {
		t.Fatalf("%d MiB are held, less than is in use", now>>20)
	}
	runtime.KeepAlive(held)
	before := memoryUse().held
	lookAt(memoryAgain)
	if now := memoryUse().held; before-now < idleKeeps {
		t.Errorf("of %d MiB %d are still held", before>>20, now>>20)
	}
}
