// Package jsonscan splits valid JSON into its parts without copying or decoding them. With other text it panics.
package jsonscan

import "encoding/json"

// Members calls fn with the name and the value of each member of an object, in their order. A name that
// occurs twice is passed twice.
func Members(object []byte, fn func(name string, value []byte)) {
	for at := skip(object, 1); object[at] != '}'; at = skip(object, at) {
		end := valueEnd(object, at)
		name := text(object[at:end])
		at = skip(object, end)
		end = valueEnd(object, at)
		fn(name, object[at:end])
		at = end
	}
}

// Items calls fn with each value of an array, in their order.
func Items(array []byte, fn func(value []byte)) {
	for at := skip(array, 1); array[at] != ']'; at = skip(array, at) {
		end := valueEnd(array, at)
		fn(array[at:end])
		at = end
	}
}

// text returns the text of a string. Only escapes and letters beyond ASCII, which may be invalid, need the decoder.
func text(quoted []byte) (text string) {
	for _, b := range quoted {
		if b == '\\' || b >= 0x80 {
			_ = json.Unmarshal(quoted, &text) // the JSON is valid
			return text
		}
	}
	return string(quoted[1 : len(quoted)-1])
}

// skip passes over the characters between names and values.
func skip(raw []byte, at int) int {
	for {
		switch raw[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			at++
		default:
			return at
		}
	}
}

// valueEnd returns the end of the value that begins at a place.
func valueEnd(raw []byte, at int) int {
	for level := 0; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			for at++; raw[at] != '"'; at++ {
				if raw[at] == '\\' {
					at++
				}
			}
			if level == 0 {
				return at + 1
			}
		case '{', '[':
			level++
		case '}', ']':
			if level == 0 {
				return at // the end of a number, true, false or null
			}
			if level--; level == 0 {
				return at + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if level == 0 {
				return at
			}
		}
	}
	return at
}
