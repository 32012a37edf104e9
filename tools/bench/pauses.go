package main

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// pauses watches the machine during a measurement: the longest time for which this process did not get to run although
// it was due, and the longest write to the disk. What pauses the generator pauses Posthorn, too, so a p99 that is as
// long is the machine's.
type pauses struct {
	cpu, disk atomic.Int64 // ns
	stop      chan struct{}
	done      chan struct{}
}

const (
	tickEvery = 2 * time.Millisecond
	// syncEvery is rare: a sync delays those of PostgreSQL.
	syncEvery = 200 * time.Millisecond
)

// watchPauses starts to watch. dir is on the disk that PostgreSQL writes to; empty: the disk is not watched.
func watchPauses(dir string) *pauses {
	p := &pauses{stop: make(chan struct{}), done: make(chan struct{})}
	go p.watchDisk(dir)
	go func() {
		due := time.Now().Add(tickEvery)
		for {
			select {
			case <-p.stop:
				return
			default:
			}
			time.Sleep(time.Until(due))
			now := time.Now()
			longest(&p.cpu, now.Sub(due))
			due = now.Add(tickEvery)
		}
	}()
	return p
}

func (p *pauses) watchDisk(dir string) {
	defer close(p.done)
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, "pauses"))
	if err != nil {
		return // the row then says 0
	}
	defer f.Close()
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(syncEvery):
		}
		began := time.Now()
		if _, err := f.WriteAt([]byte("x"), 0); err != nil || f.Sync() != nil {
			return
		}
		longest(&p.disk, time.Since(began))
	}
}

// end stops watching and returns the longest pauses.
func (p *pauses) end() (cpu, disk time.Duration) {
	close(p.stop)
	<-p.done
	return time.Duration(p.cpu.Load()), time.Duration(p.disk.Load())
}

func longest(of *atomic.Int64, d time.Duration) {
	if int64(d) > of.Load() { // one goroutine writes each
		of.Store(int64(d))
	}
}
