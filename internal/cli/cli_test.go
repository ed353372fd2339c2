package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the golden files anew")

// cmdLine is one call of the program in a world of its own.
type cmdLine struct {
	env   map[string]string
	stdin string
	args  []string
	deps  func(*Deps)
}

type outcome struct {
	code           int
	stdout, stderr string
}

func (c cmdLine) run(t *testing.T) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	deps := Deps{
		Args: c.args, Stdin: strings.NewReader(c.stdin), Stdout: &out, Stderr: &errOut,
		LookupEnv: func(k string) (string, bool) { v, ok := c.env[k]; return v, ok },
		HomeDir:   func() (string, error) { return "", errors.New("none") },
		WorkDir:   func() (string, error) { return "", errors.New("none") },
		Version:   Version{Version: "v1.2.3", Go: "go1", Platform: "any/any"},
		Serve:     func(context.Context, ServeConfig) error { return nil },
	}
	if c.deps != nil {
		c.deps(&deps)
	}
	code := Run(t.Context(), deps)
	return outcome{code, out.String(), errOut.String()}
}

// noStore fails a test that opens a store.
func noStore(t *testing.T) func(*Deps) {
	return func(d *Deps) {
		d.Open = func(context.Context, string, *loci.Options) (*loci.DB, error) {
			t.Error("the store was opened")
			return nil, loci.ErrStorage
		}
	}
}

// TestUsage holds that a wrong command line is told apart before a store is
// touched.
func TestUsage(t *testing.T) {
	tests := []struct {
		args   string
		code   int
		stderr string // part of standard error; standard output is empty
	}{
		{"nope", 2, `unknown command "nope"`},
		{"memories nope", 2, `there is no command "nope" here`},
		{"memories lst", 2, `there is no command "lst" here; did you mean list?`},
		{"recall", 2, "QUERY is missing"},
		{"remember", 2, "TEXT is missing"},
		{"recall x --nope", 2, "Run 'loci recall --help'"},
		{"recall x --limit many", 2, "invalid argument"},
		{"memories list --limit", 2, "flag needs an argument"},
		{"memories list extra args", 2, `takes no argument "extra"`},
		{"memories list {", 2, "the input is not valid JSON"},
		{"memories list --where [", 2, "--where takes JSON"},
		{"memories list --kinds memo", 2, "filter.kinds[0]: must be one of memory"},
		{"memories upsert", 2, "judgment: is missing"},
		{"memories upsert --input {} --judgment x --metadata 3", 2, "metadata: must be an object, not a number"},
		{"memories get x1", 2, "id: must be an id"},
		{"memories delete-by-filter --tags a", 2, "filter.namespace: is needed"},
		{"memories delete-by-filter --namespace a", 2, "filter.scopes: is needed"},
		{"update-index {}", 2, "takes no argument"},
		{"call", 2, "accepts between 1 and 2"},
		{"call nope", 2, `there is no operation "nope"`},
		{"call memories.lst", 2, "did you mean memories.list?"},
		{`call health {"dep":true}`, 2, "did you mean deep?"},
		{"schema nope", 2, `there is no operation "nope"`},
		{"config extra", 2, "unknown command"},
		{"recall x --timeout -3s", 2, "must be a length of time"},
		{"recall x --color blue", 2, "must be auto, always or never"},
		{"remember x --scope a --scope b", 2, "a record has one scope"},
		{"config --config /no/such/file", 1, "configuration file"},
	}
	for _, tt := range tests {
		c := cmdLine{args: append([]string{"--data", "/nowhere"}, strings.Fields(tt.args)...), deps: noStore(t)}
		got := c.run(t)
		if got.code != tt.code || got.stdout != "" || !strings.Contains(got.stderr, tt.stderr) {
			t.Errorf("loci %s: exit %d, stdout %q, stderr %q", tt.args, got.code, got.stdout, got.stderr)
		}
		// For programs the same as JSON, and nothing on standard output.
		c.args = append(c.args, "--json")
		got = c.run(t)
		var e struct {
			Error op.Failure `json:"error"`
		}
		if err := json.Unmarshal([]byte(got.stderr), &e); err != nil || got.code != tt.code || got.stdout != "" || e.Error.Code == "" {
			t.Errorf("loci %s --json: exit %d, stdout %q, stderr %q", tt.args, got.code, got.stdout, got.stderr)
		}
	}
}

// TestErrorCodes holds the exit code and hint of each kind of failure.
func TestErrorCodes(t *testing.T) {
	for _, o := range op.Outcomes() {
		c := cmdLine{args: []string{"--data", "/nowhere", "--wait", "0s", "recall", "x"}, deps: func(d *Deps) {
			d.Open = func(context.Context, string, *loci.Options) (*loci.DB, error) { return nil, o.Code }
		}}
		got := c.run(t)
		if got.code != o.Exit || got.stdout != "" || !strings.HasPrefix(got.stderr, "error: ") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", o.Code, got.code, got.stdout, got.stderr)
		}
	}
}

// TestWait holds that a store in use is waited for.
func TestWait(t *testing.T) {
	tries := 0
	c := cmdLine{args: []string{"--data", "/nowhere", "--wait", "5s", "recall", "x"}, deps: func(d *Deps) {
		d.Open = func(context.Context, string, *loci.Options) (*loci.DB, error) {
			if tries++; tries < 3 {
				return nil, loci.ErrLocked
			}
			return nil, loci.ErrSchemaVersion
		}
	}}
	if got := c.run(t); tries != 3 || got.code != op.ExitFailed {
		t.Errorf("%d tries, %+v", tries, got)
	}
}

func TestConfig(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "loci", "config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"namespace": "from-file", "scope": "from-file", "wait": "7s", "quiet": true}`)
	c := cmdLine{
		env: map[string]string{
			"XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "NO_COLOR": "1",
			"LOCI_NAMESPACE": "from-env", "LOCI_SCOPE": "from-env", "LOCI_QUIET": "0",
		},
		args: []string{"config", "--json", "--namespace", "from-flag"},
	}
	got := c.run(t)
	var res struct {
		File     string    `json:"file"`
		Exists   bool      `json:"file_exists"`
		Settings []setting `json:"settings"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &res); err != nil || got.code != 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	if res.File != file || !res.Exists {
		t.Errorf("file %s, exists %v", res.File, res.Exists)
	}
	want := []setting{
		{"data", filepath.Join(home, "loci"), "default"},
		{"namespace", "from-flag", "--namespace"},
		{"scope", "from-env", "LOCI_SCOPE"},
		{"json", "true", "--json"},
		{"quiet", "false", "LOCI_QUIET"},
		{"timeout", "0s", "default"},
		{"wait", "7s", file},
		{"attach", "true", "default"},
		{"color", "never", "NO_COLOR"},
		{"listen", defaultListen, "default"},
	}
	for i, w := range want {
		if i >= len(res.Settings) || res.Settings[i] != w {
			t.Errorf("setting %d: %+v, want %+v", i, res.Settings, w)
		}
	}

	for text, part := range map[string]string{
		`{"namespac": "a"}`:      "did you mean namespace?",
		`{"wait": 7}`:            "must be a string",
		`{"wait": "long"}`:       "must be a length of time",
		`{"data": "a"} trailing`: "more text",
	} {
		write(text)
		got := c.run(t)
		if got.code != op.ExitUsage || !strings.Contains(got.stderr, part) {
			t.Errorf("%s: %+v", text, got)
		}
		// What helps to mend it still works.
		c := c
		c.args = []string{"version"}
		if got := c.run(t); got.code != 0 || !strings.HasPrefix(got.stdout, "loci v1.2.3") {
			t.Errorf("version with a broken file: %+v", got)
		}
	}

}

// TestInput holds how flags, JSON and settings come together.
func TestInput(t *testing.T) {
	tests := []struct {
		name, stdin string
		args        []string
		env         map[string]string
		want        string
	}{
		{"flags", "", []string{"memories", "upsert", "--judgment", "x", "--tags", "a,b", "--state-strength", "0", "--metadata", `{"z":1.50,"a":2}`}, nil,
			`{"judgment":"x","metadata":{"z":1.50,"a":2},"state":{"strength":0},"tags":["a","b"]}`},
		{"flags over JSON", "", []string{"memories", "upsert", "--input", `{"judgment":"y","reasoning":"r"}`, "--judgment", "x"}, nil,
			`{"judgment":"x","reasoning":"r"}`},
		{"standard input", `{"judgment":"<潮>"}`, []string{"memories", "upsert", "-"}, nil, `{"judgment":"<潮>"}`},
		{"argument", "", []string{"memories", "list", `{"limit":2}`}, nil, `{"limit":2}`},
		{"filter merged", "", []string{"memories", "list", `{"filter":{"tags":["a"]}}`, "--thread", "t"}, nil,
			`{"filter":{"tags":["a"],"thread":"t"}}`},
		{"words joined", "", []string{"recall", "tide", "table", "--limit", "3"}, nil, `{"limit":3,"query":"tide table"}`},
		{"text on standard input", "a line\n", []string{"remember", "-"}, nil, `{"text":"a line"}`},
		{"settings", "", []string{"recall", "x"}, map[string]string{"LOCI_NAMESPACE": "n", "LOCI_SCOPE": "s"},
			`{"namespace":"n","query":"x","scopes":["s"]}`},
		{"settings give way to JSON", "", []string{"call", "recall", `{"query":"x","namespace":"own"}`}, map[string]string{"LOCI_NAMESPACE": "n"},
			`{"namespace":"own","query":"x"}`},
		{"flags win over JSON", "", []string{"call", "recall", `{"query":"x","namespace":"own"}`, "--namespace", "n"}, nil,
			`{"namespace":"n","query":"x"}`},
		{"scope repeated", "", []string{"search", "x", "--scope", "a,b", "--scope", "c"}, nil,
			`{"filter":{"scopes":["a,b","c"]},"query":"x"}`},
		{"an update stays where it is", "", []string{"memories", "upsert", `{"id":"7","judgment":"x"}`}, map[string]string{"LOCI_NAMESPACE": "n", "LOCI_SCOPE": "s"},
			`{"id":"7","judgment":"x"}`},
		{"an update moves by flag", "", []string{"memories", "upsert", `{"id":"7","judgment":"x"}`, "--scope", "t"}, map[string]string{"LOCI_NAMESPACE": "n"},
			`{"id":"7","judgment":"x","scope":"t"}`},
		{"each of a batch", "", []string{"call", "memories.upsert_many", `{"memories":[{"judgment":"x"},{"id":"7","judgment":"y"}]}`}, map[string]string{"LOCI_NAMESPACE": "n"},
			`{"memories":[{"judgment":"x","namespace":"n"},{"id":"7","judgment":"y"}]}`},
		{"deletion by flags", "", []string{"memories", "delete-by-filter", "--namespace", "n", "--scope", "s"}, nil,
			`{"filter":{"namespace":"n","scopes":["s"]}}`},
		{"a path", "", []string{"backup", "/a/../b"}, nil, `{"target":"/b"}`},
		{"a path in JSON", "", []string{"call", "backup", `{"target":"/a/../b"}`}, nil, `{"target":"/b"}`},
		{"a path of a settled input", "", []string{"call", "notes.set_root", `{"root":"/b/."}`}, map[string]string{"LOCI_NAMESPACE": "n"}, `{"namespace":"n","root":"/b"}`},
		{"deletion of all by settings", "", []string{"memories", "delete-by-filter", "--all"}, map[string]string{"LOCI_NAMESPACE": "n"},
			`{"all":true,"filter":{"namespace":"n"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newApp(Deps{
				Args: append([]string{"--data", "/nowhere"}, tt.args...), Stdin: strings.NewReader(tt.stdin),
				Stdout: io.Discard, Stderr: io.Discard,
				LookupEnv: func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok },
				HomeDir:   func() (string, error) { return "", errors.New("none") },
				WorkDir:   func() (string, error) { return "", errors.New("none") },
			})
			cmd, rest, err := a.root.Find(a.deps.Args)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatal(err)
			}
			if err := a.loadSettings(cmd); err != nil {
				t.Fatal(err)
			}
			cmd.SetContext(t.Context())
			args := cmd.Flags().Args()
			var got []byte
			if cmd.Name() == "call" {
				o, _ := op.Default().Lookup(args[0])
				got, err = a.fillDefaults(o, o.InputSchema(), []byte(args[1]), nil)
			} else {
				name := strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "loci "), " ", ".")
				o, ok := op.Default().Lookup(strings.ReplaceAll(name, "-", "_"))
				if !ok {
					t.Fatal(name)
				}
				// The command's flags exist already; this finds them again.
				in := newInputFlags(&cobra.Command{}, o, o.InputSchema())
				in.input, _ = cmd.Flags().GetString("input")
				got, err = a.operationInput(cmd, o, in, args)
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// TestExtra holds the hook for commands from outside.
func TestExtra(t *testing.T) {
	c := cmdLine{args: []string{"--data", "/nowhere", "hello", "--json"}, deps: func(d *Deps) {
		d.Extra = []func(*App) *cobra.Command{func(a *App) *cobra.Command {
			return &cobra.Command{Use: "hello", RunE: func(*cobra.Command, []string) error {
				p := a.Progress("hello")
				p.Update(1, 2)
				p.Update(2, 2)
				p.Close()
				dir, err := a.DataDir()
				return errors.Join(err, a.Print(map[string]string{"data": dir}, nil), Failed(7))
			}}
		}}
	}}
	got := c.run(t)
	if got.code != 7 || got.stdout != `{"data":"/nowhere"}`+"\n" || got.stderr != `{"progress":{"done":2,"total":2}}`+"\n" {
		t.Errorf("%+v", got)
	}
}

func TestDoctorWithoutStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "down")
	c := cmdLine{args: []string{"--data", dir, "doctor", "--json"}, deps: noStore(t)}
	got := c.run(t)
	var res struct {
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &res); err != nil || got.code != 0 || !res.OK || len(res.Findings) == 0 {
		t.Errorf("%+v: %v", got, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("doctor made a directory")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.args = []string{"--data", file, "doctor"}
	if got := c.run(t); got.code != op.ExitFailed || !strings.Contains(got.stdout, "Choose a directory") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}

// TestDoctorLocked holds the exit code and that the holder is named.
func TestDoctorLocked(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"loci.db": "", "writer.lock": `{"pid":42,"started_at_us":0,"version":"v9"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := cmdLine{args: []string{"--data", dir, "doctor"}, deps: func(d *Deps) {
		d.Open = func(context.Context, string, *loci.Options) (*loci.DB, error) { return nil, loci.ErrLocked }
	}}
	got := c.run(t)
	if got.code != op.ExitLocked || !strings.Contains(got.stdout, "process 42, since 1970-01-01T00:00:00Z, loci v9") {
		t.Errorf("%+v", got)
	}
}

// TestHelpGolden holds the help of every command.
func TestHelpGolden(t *testing.T) {
	root := New(Deps{Args: []string{}, Serve: func(context.Context, ServeConfig) error { return nil }})
	var b bytes.Buffer
	root.SetOut(&b)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" {
			return // cobra's own
		}
		b.WriteString("## " + cmd.CommandPath() + "\n\n")
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	const file = "testdata/help.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s is old; run go test ./internal/cli -update and look at the difference", file)
	}
}

// TestCompletion holds that each shell gets a script, and that names and words
// of closed sets are completed.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := cmdLine{args: []string{"completion", shell}, deps: noStore(t)}.run(t)
		if got.code != 0 || !strings.Contains(got.stdout, "loci") || got.stderr != "" {
			t.Errorf("%s: exit %d, %s", shell, got.code, got.stderr)
		}
	}
	for line, want := range map[string]string{
		"memories up":                  "upsert-many\t",
		"call memories.up":             "memories.upsert_many\t",
		"schema re":                    "rebuild_indexes\t",
		"search x --match-field ":      "path\n",
		"memories list --kinds memory": "memory\n",
	} {
		got := cmdLine{args: append([]string{"__complete"}, strings.Split(line, " ")...), deps: noStore(t)}.run(t)
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: exit %d, %s%s", line, got.code, got.stdout, got.stderr)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"潮水 table\n":        "潮水 table\n",
		"\x1b[31mred\x07":   "\uFFFD[31mred\uFFFD",
		"a\u202Eb\u2066c\r": "a\uFFFDb\uFFFDc\uFFFD",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q", in, got)
		}
	}
	if got := cut("潮水表每周更新", 7); got != "潮水表…" {
		t.Error(got)
	}
}
