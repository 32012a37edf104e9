package maintenance_test

import (
	"os"
	"testing"

	"posthorn/tools/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
