//go:build amd64 && !purego

package vec

import (
	"testing"

	"golang.org/x/sys/cpu"
)

func TestDetect(t *testing.T) {
	if want := cpu.X86.HasAVX2 && cpu.X86.HasFMA; HasSIMD() != want {
		t.Errorf("got %v, want %v", HasSIMD(), want)
	}
}
