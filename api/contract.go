package api

import (
	_ "embed"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"earshot/api/contract"
)

//go:embed openapi.yaml
var contractYAML []byte

// loadContract reads the contract once for all servers of a process. The contract never changes,
// and reading it takes longer than most tests that start a server.
var loadContract = sync.OnceValues(func() (*contract.Contract, error) { return contract.Read(contractYAML) })

// Contract returns api/openapi.yaml. All callers get the same document and must not modify it.
func Contract() (*openapi3.T, error) {
	c, err := loadContract()
	if err != nil {
		return nil, err
	}
	return c.Doc, nil
}

// operation is an operation of the contract.
type operation struct{ contract.Operation }
