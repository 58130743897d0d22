package contract

import "encoding/json"

// The functions of this file scan valid JSON without copying it.

// eachMember calls fn with the name and the value of each member of an object.
func eachMember(object []byte, fn func(name string, value []byte)) {
	for at := skip(object, 1); object[at] != '}'; at = skip(object, at) {
		end := valueEnd(object, at)
		var name string
		_ = json.Unmarshal(object[at:end], &name)
		at = skip(object, end)
		end = valueEnd(object, at)
		fn(name, object[at:end])
		at = end
	}
}

// eachItem calls fn with each value in an array.
func eachItem(array []byte, fn func(value []byte)) {
	for at := skip(array, 1); array[at] != ']'; at = skip(array, at) {
		end := valueEnd(array, at)
		fn(array[at:end])
		at = end
	}
}

// skip passes over the characters between names and values.
func skip(text []byte, at int) int {
	for {
		switch text[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			at++
		default:
			return at
		}
	}
}

// valueEnd returns the end of the value that begins at a place.
func valueEnd(text []byte, at int) int {
	for level := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; text[at] != '"'; at++ {
				if text[at] == '\\' {
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
