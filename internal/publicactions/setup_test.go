package publicactions_test

import (
	"testing"

	"earshot/internal/testkit/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }
