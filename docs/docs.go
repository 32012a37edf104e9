// Package docs holds the pages of documentation, which a server shows at /docs.
package docs

import "embed"

// Pages are the Markdown files of this folder and of adr/.
//
//go:embed *.md adr/*.md
var Pages embed.FS
