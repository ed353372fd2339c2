package httpapi

import (
	"net"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
)

// TestPortInUse holds that the program which has the port is named as the cause.
func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ln, err := listen(t.Context(), taken.Addr().String(), false)
	if err == nil {
		ln.Close()
	}
	if errs.CodeOf(err) != errs.IO || !strings.Contains(err.Error(), "another program listens on "+taken.Addr().String()) {
		t.Errorf("%v", err)
	}
}
