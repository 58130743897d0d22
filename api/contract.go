package api

import (
	_ "embed"
	"sync"

	"earshot/api/contract"
)

//go:embed openapi.yaml
var contractYAML []byte

// loadContract reads the contract once for all servers of a process. The contract never changes,
// and reading it takes longer than most tests that start a server.
var loadContract = sync.OnceValues(func() (*contract.Contract, error) { return contract.Read(contractYAML) })

// operation is an operation of the contract.
type operation struct{ contract.Operation }
