// Package handlers is the kit that every handler is built from: who calls (Authenticator, Actor), which routes exist
// (Route, Kit.Mount), how a request is read (Call.Decode, Call.ID, Call.Page) and how an answer or a refusal is written
// (Call.Answer, Fail). It knows no noun of the API.
package handlers
