package devstack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemoveKeepsFilesThatDoNotBelongToTheCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o600))
	require.NoError(t, Remove(dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "mine.txt", left[0].Name())
	require.NoError(t, Remove(filepath.Join(dir, "absent")), "nothing to remove is no error")
}

func TestACopiedCheckoutNeverRemovesTheOriginalsData(t *testing.T) {
	t.Parallel()
	original, dir := t.TempDir(), t.TempDir()
	foreign := filepath.Join(original, filepath.Base(otherHomes(original)[0]))
	require.NoError(t, os.Mkdir(foreign, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, locationFile), []byte(foreign+"\n"), 0o644))
	require.Empty(t, recordedHome(dir))
	require.NoError(t, Remove(dir))
	require.DirExists(t, foreign)
}

func TestAHomeThatIsAFileOrALinkIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(dir, link))
	require.ErrorContains(t, makeHome(link), "not a directory of ours")
}

func TestThePostgresThatMadeTheDataIsPreferred(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		found  []int
		wanted int
		picks  int
		says   string
	}{
		"the first for new data":            {found: []int{16, 15}, picks: 16},
		"the maker for old data":            {found: []int{16, 15}, wanted: 15, picks: 15},
		"the first that is new enough":      {found: []int{13, 15}, picks: 15},
		"none that is too old":              {found: []int{13}, says: "Postgres 13 in /13 is too old, 14 or newer is needed"},
		"none that cannot read the data":    {found: []int{16}, wanted: 15, says: "install 15 or remove the data"},
		"none if there is none, with a tip": {says: "no Postgres found: install it with"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found []binaries
			for _, major := range c.found {
				found = append(found, binaries{dir: "/13", major: major})
			}
			picked, err := pick(found, c.wanted)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.picks, picked.major)
		})
	}
}
