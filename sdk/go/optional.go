package earshot

import (
	"encoding/json"
	"fmt"
)

// Optional is a member that may be omitted, null or a value. Its zero value is omitted.
type Optional[T any] struct {
	value *T
	null  bool
}

// Some returns a member with a value.
func Some[T any](value T) Optional[T] { return Optional[T]{value: &value} }

// Null returns a member that is null, which removes the stored value.
func Null[T any]() Optional[T] { return Optional[T]{null: true} }

// Get returns the value, and whether there is one.
func (o Optional[T]) Get() (value T, ok bool) {
	if o.value == nil {
		return value, false
	}
	return *o.value, true
}

// IsNull reports whether the member is null.
func (o Optional[T]) IsNull() bool { return o.null }

// IsZero reports whether the member is omitted.
func (o Optional[T]) IsZero() bool { return o.value == nil && !o.null }

func (o Optional[T]) String() string {
	switch {
	case o.null:
		return "null"
	case o.value == nil:
		return "left out"
	}
	return fmt.Sprint(*o.value)
}

// MarshalJSON writes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// UnmarshalJSON reads a value or null.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{}
	if err := json.Unmarshal(data, &o.value); err != nil {
		return err
	}
	o.null = o.value == nil
	return nil
}

// Ptr returns a pointer to a value, for members that may be omitted but are never null.
func Ptr[T any](value T) *T { return &value }
