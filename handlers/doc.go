// Package handlers is the kit for every handler: who calls (Authenticator, Actor), which routes exist (Route,
// Kit.Mount), how a request is read (Call.Decode, Call.ID, Call.Page), and how a response or an error is written
// (Call.Answer, Fail). It knows no noun of the API.
package handlers
