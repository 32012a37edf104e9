package send

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute: several at a time, however few the processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
