//go:build !failpoints

package failpoint

// Hit does nothing in a program that is built without the tag "failpoints".
func Hit(Point) {}

// HitRequest does nothing either.
func HitRequest(_, _ string) {}
