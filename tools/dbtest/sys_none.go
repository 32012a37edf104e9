//go:build !unix || aix || solaris

package dbtest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
)

const (
	shared    = 1
	exclusive = 2
)

func tryLock(string, int) (*os.File, error) {
	return nil, errors.New("tests need " + urlVariable + " on this system")
}
func ownedByMe(fs.FileInfo) bool { return true }
func detach(*exec.Cmd)           {}
func hasEnded(int) bool          { return true }
