package postgres_test

import (
	"testing"

	"earshot/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
