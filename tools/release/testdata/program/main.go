// Command program is a small program with a dependency, for the tests of the release.
package main

import "github.com/spdx/tools-golang/spdxlib"

func main() { _ = spdxlib.ValidateDocument(nil) }
