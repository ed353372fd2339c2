package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

func TestImportText(t *testing.T) {
	folder := t.TempDir()
	in := ""
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := cmdLine{args: append([]string{"--data=" + filepath.Join(folder, "data")}, args...), stdin: in}.run(t)
		if got.code != code {
			t.Fatalf("loci %s: %+v", strings.Join(args, " "), got)
		}
		return got
	}
	file := filepath.Join(folder, "kin.txt")
	if err := os.WriteFile(file, []byte("knows(Ada) = Ben\nknows(Ben, Cy)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := run(0, "graph", "import-text", file, "--tags", "kin"); !strings.Contains(got.stdout, "3 entities and 2 relations read") {
			t.Errorf("%+v", got)
		}
	}
	in = "knows(Cy) = Ada\n"
	run(0, "graph", "import-text", "-")
	if got := run(0, "graph", "strongly-connected", "--json"); !strings.Contains(strings.Join(strings.Fields(got.stdout), ""), `"components":[["1","2","3"]]`) {
		t.Errorf("%+v", got)
	}
	if got := run(0, "graph", "path", "1", "3"); strings.Index(got.stdout, "Ada") > strings.Index(got.stdout, "Ben") || !strings.Contains(got.stdout, "Cy") {
		t.Errorf("%+v", got)
	}
	in = "knows(Cy"
	if got := run(op.ExitCode(loci.ErrValidation), "graph", "import-text", "-"); !strings.Contains(got.stderr, "line 1") {
		t.Errorf("%+v", got)
	}
	run(op.ExitCode(loci.ErrIO), "graph", "import-text", filepath.Join(folder, "nothing"))
	if got := run(op.ExitUsage, "graph", "import-text", file, file); !strings.Contains(got.stderr, "one file") {
		t.Errorf("%+v", got)
	}
}
