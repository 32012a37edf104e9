package send

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute, so several run concurrently, however few the processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	stopRabbit()
	os.Exit(code)
}
