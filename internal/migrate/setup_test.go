package migrate_test

import (
	"fmt"
	"os"
	"testing"

	"earshot/internal/testkit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(filesVariable); dir != "" {
		if err := migrateOnly(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.Main(m)
}
