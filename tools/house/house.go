// Package house holds the rules about the code that a program can check: which folder imports which, who sees rows,
// what packages of db export, how wide comments are, and American spelling. All of it is in tests: `go test ./...`
// checks it.
package house
