//go:build !unix || aix || solaris

package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// supported is false on systems where a server can't be supervised yet: POSTHORN_DATABASE_URL is required there.
const supported = false

const (
	stopFast      = syscall.SIGINT
	stopImmediate = syscall.SIGQUIT
	stopHard      = syscall.SIGKILL
)

func isRoot() bool                                         { return false }
func inodeOf(fs.FileInfo) uint64                           { return 0 }
func ownerOf(fs.FileInfo) int                              { return -1 }
func tryLock(string) (*os.File, error)                     { return nil, errors.ErrUnsupported }
func runAs(*exec.Cmd, account)                             {}
func detach(*exec.Cmd)                                     {}
func endWithParent(*exec.Cmd)                              {}
func signal(int, syscall.Signal) error                     { return errors.ErrUnsupported }
func openNoFollow(path string) (*os.File, error)           { return os.Open(path) }
func createNoFollow(path string) (*os.File, error)         { return os.Create(path) }
func selfProgram() (string, error)                         { return os.Executable() }
func platformSettings() map[string]string                  { return nil }
func commandLines(context.Context) (map[int]string, error) { return nil, errors.ErrUnsupported }
