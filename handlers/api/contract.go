package api

import _ "embed"

// Contract is the OpenAPI document of this API, in YAML.
//
//go:embed openapi.yaml
var Contract []byte
