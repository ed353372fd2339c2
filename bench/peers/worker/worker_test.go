package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

const fakeWorker = "fake-worker"

// TestMain makes the test's own program a worker that answers each line with a line
// given to it, or does what the line says.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != fakeWorker {
		os.Exit(m.Run())
	}
	answers := os.Args[2:]
	lines := bufio.NewScanner(os.Stdin)
	for i := 0; lines.Scan() && i < len(answers); i++ {
		switch answers[i] {
		case "die":
			fmt.Fprint(os.Stderr, strings.Repeat("x", 2*tailSize), "last words")
			os.Exit(4)
		case "hang":
			select {}
		case "echo":
			fmt.Printf("{\"ok\": %s}\n", lines.Text())
		case "environment":
			fmt.Printf("{\"ok\": %q}\n", os.Getenv("PEERS_TEST"))
		default:
			fmt.Println(answers[i])
		}
	}
}

func start(t *testing.T, answers ...string) *Worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w, err := Start(context.Background(), "fake", []string{"PEERS_TEST=set"}, append([]string{self, fakeWorker}, answers...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	return w
}

func TestCall(t *testing.T) {
	ctx := context.Background()
	w := start(t, "echo", "environment", `{"unsupported": "no such thing"}`, `{"error": "it broke"}`, `{}`, `nonsense`, `{"ok": {"wall": 2}}`)
	got, err := Call[protocol.Request](ctx, w, protocol.OpOpen, protocol.Open{Dir: "x"})
	if err != nil || got.Op != protocol.OpOpen || got.Args.(map[string]any)["dir"] != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
	if env, err := Call[string](ctx, w, "x", nil); err != nil || env != "set" {
		t.Errorf("environment %q, %v", env, err)
	}
	var unsupported *Unsupported
	if _, err := Call[int](ctx, w, "x", nil); !errors.As(err, &unsupported) || unsupported.Why != "no such thing" {
		t.Errorf("unsupported: %v", err)
	}
	var failure *Failure
	if _, err := Call[int](ctx, w, "x", nil); !errors.As(err, &failure) || failure.Text != "it broke" {
		t.Errorf("error: %v", err)
	}
	for _, what := range []string{"an empty answer", "nonsense"} {
		if _, err := Call[int](ctx, w, "x", nil); err == nil || errors.As(err, &failure) || errors.As(err, &unsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if cost, err := w.Close(ctx); err != nil || cost.Wall != 2 {
		t.Errorf("close: %+v, %v", cost, err)
	}
	if _, err := Call[int](ctx, w, "x", nil); !errors.Is(err, ErrDied) {
		t.Errorf("after close: %v", err)
	}
}

func TestDeath(t *testing.T) {
	ctx := context.Background()
	w := start(t, "die")
	_, err := Call[int](ctx, w, protocol.OpLoad, nil)
	if !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "exit status 4") || !strings.HasSuffix(err.Error(), "last words") {
		t.Errorf("%v", err)
	}
	if len(err.Error()) > tailSize+200 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	if _, err := Call[int](ctx, w, protocol.OpLoad, nil); !errors.Is(err, ErrDied) {
		t.Errorf("once more: %v", err)
	}
}

func TestGivingUp(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	w := start(t, "hang")
	cancel(cause)
	if _, err := Call[int](ctx, w, protocol.OpLoad, nil); !errors.Is(err, ErrDied) || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestNoSuchProgram(t *testing.T) {
	if _, err := Start(context.Background(), "nobody", nil, "no/such/program"); err == nil {
		t.Error("it started")
	}
}
