package postgres_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"entgo.io/ent"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
)

// entity is one entity of a client, reached by reflection, so that the tests cover new entities
// without a change.
type entity struct {
	name   string
	client reflect.Value
}

// entities returns all entities that belong to an organization: all but Organization.
func entities(c *db.Client) []entity {
	var found []entity
	fields := reflect.ValueOf(c).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if fields.Type().Field(i).IsExported() && fields.Field(i).MethodByName("Query").IsValid() && name != db.TypeOrganization {
			found = append(found, entity{name, fields.Field(i)})
		}
	}
	return found
}

// The common interfaces of the generated builders.
type (
	counter interface {
		Count(ctx context.Context) (int, error)
	}
	saver interface {
		Save(ctx context.Context) (int, error)
	}
	deleter interface {
		Exec(ctx context.Context) (int, error)
	}
	executor interface {
		Exec(ctx context.Context) error
	}
)

func (e entity) call(method string, args ...any) []reflect.Value {
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		in[i] = reflect.ValueOf(a)
	}
	return e.client.MethodByName(method).Call(in)
}

func (e entity) build(method string, args ...any) any { return e.call(method, args...)[0].Interface() }

func (e entity) count(ctx context.Context) (int, error) {
	return e.build("Query").(counter).Count(ctx)
}

// anyID is the id of one row that the context can reach.
func (e entity) anyID(ctx context.Context, t *testing.T) any {
	t.Helper()
	got := reflect.ValueOf(e.build("Query")).MethodByName("First").Call([]reflect.Value{reflect.ValueOf(ctx)})
	require.True(t, got[1].IsNil(), "%s: %v", e.name, got[1])
	return got[0].Elem().FieldByName("ID").Interface()
}

func (e entity) get(ctx context.Context, id any) error {
	err, _ := e.call("Get", ctx, id)[1].Interface().(error)
	return err
}

// change sets one field of an update and reports whether it found a field.
func change(update any) bool {
	v := reflect.ValueOf(update)
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if !strings.HasPrefix(name, "Set") || m.Type().NumIn() != 1 || m.Type().IsVariadic() {
			continue
		}
		switch in := m.Type().In(0); {
		case in.Kind() == reflect.String && in.PkgPath() == "", in == reflect.TypeFor[time.Time](),
			strings.HasSuffix(in.PkgPath(), "/publicid"):
			m.Call([]reflect.Value{reflect.Zero(in)})
			return true
		case strings.HasSuffix(name, "Sealed"):
			m.Call([]reflect.Value{reflect.ValueOf([]byte("x"))})
			return true
		}
	}
	return false
}

// into assigns a new row to an organization.
func into(t *testing.T, create, organization any) any {
	t.Helper()
	m := reflect.ValueOf(create).MethodByName("Mutation").Call(nil)[0].Interface().(ent.Mutation)
	require.NoError(t, m.SetField("organization_id", organization))
	return create
}

// everything returns all ways to touch an entity's rows, by name. Each returns the number of rows
// that it reached.
func (e entity) everything(id any) map[string]func(context.Context) (int, error) {
	one := func(err error) (int, error) {
		if err != nil {
			return 0, err
		}
		return 1, nil
	}
	ways := map[string]func(context.Context) (int, error){
		"count":      e.count,
		"get":        func(ctx context.Context) (int, error) { return one(e.get(ctx, id)) },
		"delete":     func(ctx context.Context) (int, error) { return e.build("Delete").(deleter).Exec(ctx) },
		"delete one": func(ctx context.Context) (int, error) { return one(e.build("DeleteOneID", id).(executor).Exec(ctx)) },
	}
	if update := e.build("Update"); change(update) {
		ways["update"] = func(ctx context.Context) (int, error) { return update.(saver).Save(ctx) }
		ways["update one"] = func(ctx context.Context) (int, error) {
			update := e.build("UpdateOneID", id)
			change(update)
			return one(update.(executor).Exec(ctx))
		}
	}
	return ways
}
