//go:build unix

package vec

import (
	"os"
	"syscall"
	"testing"
)

// guarded gives size bytes between two pages that nobody may read: a kernel
// that strays by one byte dies. last puts the bytes right before the second
// page, otherwise they lie right after the first.
func guarded(t testing.TB, size int, last bool) []byte {
	page := os.Getpagesize()
	inner := (size + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, inner+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(m); err != nil {
			t.Error(err)
		}
	})
	for _, p := range [][]byte{m[:page], m[page+inner:]} {
		if err := syscall.Mprotect(p, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if last {
		return m[page+inner-size : page+inner : page+inner]
	}
	return m[page : page+size : page+inner]
}
