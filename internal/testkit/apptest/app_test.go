package apptest_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestAServiceOfATestHasAllUseCases(t *testing.T) {
	t.Parallel()
	all := reflect.ValueOf(apptest.Start(t, apptest.Options{}).UseCases)
	for i := range all.NumField() {
		if all.Type().Field(i).IsExported() && all.Field(i).Kind() == reflect.Pointer {
			require.False(t, all.Field(i).IsNil(), all.Type().Field(i).Name)
		}
	}
}

func TestMain(m *testing.M) { apptest.Main(m) }
