package contacts

import (
	"hash/maphash"
	"sync/atomic"

	"earshot/internal/publicid"
)

// importAfter is how many contacts in a row have to be new before an organization is taken to
// import its contacts: more than sign up in a row where most are known.
const importAfter = 32

// imports tells which organizations identify nobody but new contacts just now. For them the
// insertion is tried first, which spares each contact the look that it isn't there. A guess
// that is wrong costs that one contact a statement more and ends the import.
type imports struct {
	// inARow counts new contacts by a hash of the organization. Two that share a counter guess
	// wrong more often, and nothing else.
	inARow [1 << 10]atomic.Int32
}

var importSeed = maphash.MakeSeed()

func (m *imports) of(o publicid.Organization) *atomic.Int32 {
	return &m.inARow[maphash.Comparable(importSeed, o)%uint64(len(m.inARow))]
}

// likely reports whether the organization's next contact is taken for a new one.
func (m *imports) likely(o publicid.Organization) bool { return m.of(o).Load() >= importAfter }

// inserted notes a contact that was new.
func (m *imports) inserted(o publicid.Organization) {
	if n := m.of(o); n.Load() < importAfter {
		n.Add(1)
	}
}

// known notes one that was there.
func (m *imports) known(o publicid.Organization) {
	if n := m.of(o); n.Load() != 0 {
		n.Store(0)
	}
}
