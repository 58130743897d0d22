package earshot

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// decodeObject decodes data into known, a pointer to a struct, and keeps members without a field in extra.
// Numbers without a fixed type become json.Number, which loses no digit.
func decodeObject(data []byte, known any, extra *map[string]json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(known); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*extra = nil
	t := reflect.TypeOf(known).Elem()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			delete(all, name)
		}
	}
	if len(all) > 0 {
		*extra = all
	}
	return nil
}

// encodeObject is the reverse of decodeObject.
func encodeObject(known any, extra map[string]json.RawMessage) ([]byte, error) {
	text, err := json.Marshal(known)
	if err != nil || len(extra) == 0 {
		return text, err
	}
	rest, err := json.Marshal(extra)
	if err != nil || len(text) == len("{}") {
		return rest, err
	}
	return append(append(text[:len(text)-1], ','), rest[1:]...), nil
}

// takePayload removes an event from extra and decodes it, because encoding/json can't choose its type.
func takePayload(extra map[string]json.RawMessage, name string, into *Event) (err error) {
	text := extra[name]
	if text == nil {
		return nil
	}
	delete(extra, name)
	*into, err = decodeEvent(text)
	return err
}

// withPayload puts the event back.
func withPayload(extra map[string]json.RawMessage, name string, payload Event) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{name: text}
	for name, text := range extra {
		all[name] = text
	}
	return all, nil
}
