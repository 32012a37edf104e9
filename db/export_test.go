package db

// EngineRoles is for the test that compares them with what migrations create.
var EngineRoles = engineRoles
