package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
)

// askDoctor gives doctor's findings by check, those of one check joined.
func askDoctor(t *testing.T, code int, args ...string) map[string]finding {
	t.Helper()
	got := cmdLine{args: append([]string{"doctor", "--json"}, args...)}.run(t)
	var res struct {
		Findings []finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &res); err != nil || got.code != code {
		t.Fatalf("%v: %+v", err, got)
	}
	found := map[string]finding{}
	for _, f := range res.Findings {
		if f.Level != levelOK && f.Level != levelNote && f.Do == "" {
			t.Errorf("%s does not say what to do: %+v", f.Check, f)
		}
		if f.Finding == "" || strings.Contains(f.Check, "\n") {
			t.Errorf("%+v", f)
		}
		found[f.Check] = f
	}
	return found
}

// TestDoctorFiles holds what doctor tells of a data directory's files, with and
// without opening it.
func TestDoctorFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(found map[string]finding, check, level, text string) {
		t.Helper()
		if f := found[check]; f.Level != level || !strings.Contains(f.Finding, text) {
			t.Errorf("%s: %+v, want %s: %s", check, f, level, text)
		}
	}
	if got := (cmdLine{args: []string{"--data", dir, "remember", "x"}}).run(t); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	found := askDoctor(t, 0, "--data", dir)
	want(found, "database file", levelOK, "schema version 4, application id 0x4c4f4349")
	want(found, "log", levelOK, "0 B")
	want(found, "index files", levelOK, "the journal has")
	want(found, "journal", levelOK, "revisions")
	want(found, "database", levelNote, "not checked")
	want(found, "lock", levelOK, "nobody")
	if f := found["free space"]; f.Level == "" {
		t.Error("nothing is said of free space")
	}
	if runtime.GOOS != "windows" {
		want(found, "permissions", levelOK, "alone")
		for _, open := range []struct {
			folder, file os.FileMode
			level, text  string
		}{{0o711, 0o600, levelOK, "alone"}, {0o711, 0o640, levelWarning, "may read"}, {0o700, 0o666, levelOK, "alone"}, {0o770, 0o600, levelWarning, "may replace"}, {0o700, 0o600, levelOK, "alone"}} {
			if err := errors.Join(os.Chmod(dir, open.folder), os.Chmod(at("loci.db"), open.file)); err != nil {
				t.Fatal(err)
			}
			want(askDoctor(t, 0, "--data", dir), "permissions", open.level, open.text)
		}
	}
	want(askDoctor(t, 0, "--data", dir, "--deep"), "database", levelOK, "checked")

	write(at("index", "damaged-g000001", "part"), "xx")
	write(at("import-1.spool"), "x")
	write(at("loci.db.v1"), "x")
	write(filepath.Join(filepath.Dir(dir), ".loci-partial-1", "loci.db"), "xyz")
	found = askDoctor(t, 0, "--data", dir)
	want(found, "set aside", levelNote, "2 B: "+at("index", "damaged-g000001"))
	want(found, "left behind", levelNote, "4 B: ")
	want(found, "old copies", levelNote, at("loci.db.v1"))

	text, err := os.ReadFile(at("loci.db"))
	if err != nil {
		t.Fatal(err)
	}
	newer := []byte(string(text))
	newer[63] = 9
	write(at("loci.db"), string(newer))
	want(askDoctor(t, op.ExitFailed, "--data", dir), "database file", levelTrouble, "schema version 9, which is newer")
	foreign := []byte(string(text))
	copy(foreign[68:], "abcd")
	write(at("loci.db"), string(foreign))
	found = askDoctor(t, op.ExitFailed, "--data", dir)
	want(found, "database file", levelTrouble, "another program")
	if _, opened := found["store"]; opened {
		t.Error("a file of another program was opened")
	}
	if now, err := os.ReadFile(at("loci.db")); err != nil || string(now) != string(foreign) {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestDoctorSpace holds where little room becomes a warning.
func TestDoctorSpace(t *testing.T) {
	for _, c := range []struct {
		free, used uint64
		level      string
	}{
		{1 << 20, 0, levelTrouble}, {leastFree, leastFree + 1, levelWarning}, {leastFree, leastFree, levelOK}, {1 << 40, 1 << 30, levelOK},
	} {
		d := &doctor{}
		d.judgeSpace(c.free, c.used)
		if d.findings[0].Level != c.level {
			t.Errorf("%+v: %+v", c, d.findings)
		}
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 29: "1.5 GiB", 1<<64 - 1: "16.0 EiB"} {
		if got := sizeOf(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
