package publicactions_test

import (
	"testing"

	"earshot/internal/testkit/apptest"
	"earshot/web"
)

func TestMain(m *testing.M) { apptest.Main(m, apptest.WithParts(web.Module)) }
