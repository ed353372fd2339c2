//go:build !unix

package vec

import "testing"

// guarded gives size bytes; here, without guards.
func guarded(_ testing.TB, size int, _ bool) []byte { return make([]byte, size) }
