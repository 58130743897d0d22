package needs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/needs"
)

func TestTheCommandNamesEachPackageOnce(t *testing.T) {
	t.Parallel()
	tools := []needs.Tool{needs.Named("python3"), needs.Named("gcc"), needs.Named("python3")}
	require.Equal(t, "sudo apt-get install gcc libc6-dev python3", needs.Command(tools))
}
