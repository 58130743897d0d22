package api

import (
	"context"
	"crypto/sha256"

	"earshot/internal/batch"
)

// lookupMax is as many hashes as there are connections, and so requests at once.
const lookupMax = 2048

// keyLookup tells whether there is a key with a hash at all, before anything else is
// asked of the database. Look-ups that come while one is under way go together in the
// next: however many keys somebody makes up, they cost one connection, and nobody with
// a valid key waits longer than for two statements.
type keyLookup = batch.Batcher[[sha256.Size]byte, bool]

// newKeyLookup asks for those of the hashes that some key has.
func newKeyLookup(ask func(ctx context.Context, hashes [][]byte) (there [][]byte, err error)) *keyLookup {
	return batch.New(lookupMax, lookUpTimeout, func(ctx context.Context, all [][sha256.Size]byte) ([]bool, error) {
		hashes := make([][]byte, len(all))
		for i := range all {
			hashes[i] = all[i][:]
		}
		there, err := ask(ctx, hashes)
		if err != nil {
			return nil, err
		}
		found := make(map[[sha256.Size]byte]bool, len(there))
		for _, hash := range there {
			found[[sha256.Size]byte(hash)] = true
		}
		known := make([]bool, len(all))
		for i, hash := range all {
			known[i] = found[hash]
		}
		return known, nil
	})
}
