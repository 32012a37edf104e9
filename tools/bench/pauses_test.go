package main

import (
	"os"
	"testing"
	"time"
)

func TestAPauseOfTheMachineIsSeen(t *testing.T) {
	t.Parallel()
	p := watchPauses(t.TempDir())
	time.Sleep(3 * syncEvery) // the watching itself takes time
	cpu, disk := p.end()
	if cpu < 0 || cpu > time.Minute || disk <= 0 || disk > time.Minute {
		t.Errorf("%v, %v", cpu, disk)
	}
	if cpu, disk = watchPauses("").end(); disk != 0 {
		t.Errorf("without a folder: %v, %v", cpu, disk)
	}
	if _, disk = watchPauses(string(os.PathSeparator) + "no such folder").end(); disk != 0 {
		t.Errorf("without one that is there: %v", disk)
	}
}
