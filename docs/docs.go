// Package docs holds the pages of documentation, which a server shows at /docs.
package docs

import "embed"

// Pages are the Markdown files of this folder, of adr/ and of ops/.
//
//go:embed *.md adr/*.md ops/*.md
var Pages embed.FS
