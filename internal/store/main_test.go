package store_test

import (
	"fmt"
	"os"
	"testing"

	"earshot/internal/testkit/apptest"
	"earshot/internal/testkit/tier"
	"earshot/worker"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(filesVariable); dir != "" {
		if err := migrateOnly(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	tier.Properties(20, 30) // 20 lives of a delivery take two seconds
	apptest.Main(m, apptest.WithWorker(worker.Module))
}
