package foreign

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, p *Plan) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(p); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".plan.json")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s: the plan is another one than %s; go test ./internal/foreign -update writes it\n%s", name, path, b.Bytes())
	}
}

func sample(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestSamples reads a file of each source, with all that may be wrong in one.
func TestSamples(t *testing.T) {
	read := func(p *Plan, err error) *Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	golden(t, "mcp-memory", read(ReadMCPMemory("memory.jsonl", sample(t, "memory.jsonl"))))
	golden(t, "mem0", read(ReadMem0("mem0.json", sample(t, "mem0.json"))))
	golden(t, "jsonl", read(ReadJSONL("items.jsonl", sample(t, "items.jsonl"))))
	golden(t, "basic-memory", read(ReadBasicMemory("basic", os.DirFS("testdata/basic"))))
	golden(t, "markdown", read(ReadMarkdown("notes", os.DirFS("testdata/notes"))))
}

// TestSame reads one list of mem0 in its three forms.
func TestMem0Forms(t *testing.T) {
	const list = `[{"id":"a","memory":"x"}]`
	var plans []*Plan
	for _, text := range []string{list, `{"results":` + list + `}`, `{"memories":` + list + `}`, "\xef\xbb\xbf" + list} {
		p, err := ReadMem0("f", strings.NewReader(text))
		if err != nil || len(p.Memories) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		plans = append(plans, p)
	}
	for _, p := range plans[1:] {
		if p.Memories[0].Key != plans[0].Memories[0].Key {
			t.Errorf("keys differ: %s, %s", p.Memories[0].Key, plans[0].Memories[0].Key)
		}
	}
	for _, text := range []string{"", "{}", `{"results":[}`, "7", `"x"`} {
		if _, err := ReadMem0("f", strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// TestLinks holds that links in a folder are not followed.
// TestMarkdownIsNoJSON: the file of another memory does not come in as one long text.
func TestMarkdownIsNoJSON(t *testing.T) {
	for name, refused := range map[string]bool{"mem0.json": true, "dir/Memory.JSONL": true, "a.md": false, "a.txt": false, "a": false} {
		_, err := ReadMarkdownFile(name, strings.NewReader("The tide table is updated weekly."))
		if (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("Secret."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.md")); err != nil {
		t.Skip("no links here")
	}
	p, err := ReadMarkdown("f", os.DirFS(dir))
	if err != nil || len(p.Memories) != 0 || p.LeftOutCount["file"] != 1 {
		t.Errorf("%+v %v", p, err)
	}
}

// TestLongLine holds that a line beyond the limit is listed and the next one read.
func TestLongLine(t *testing.T) {
	text := `"` + strings.Repeat("a", maxLineBytes) + "\"\n\"b\"\n"
	p, err := ReadJSONL("f", strings.NewReader(text))
	if err != nil || len(p.Memories) != 1 || p.LeftOutCount["line"] != 1 {
		t.Errorf("%d memories, %v, %v", len(p.Memories), p.LeftOut, err)
	}
}

// TestNothingIsLost holds that every word of a page is in some block, in order.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{
			"", "# one", "## two ##", "word", "  deep", "- item", "  - nested", "3. third", "```", "~~~~", "> quote", "| a | b |", "    code", "- [x] box", "***", "#tag", "-", "1.",
		})
		lines := rapid.SliceOfN(line, 0, 12).Draw(t, "lines")
		flat := rapid.Bool().Draw(t, "flat")
		g := parsePage("p.md", strings.Join(lines, "\n"), flat)
		var got []string
		last := 0
		for _, b := range g.blocks {
			if b.line <= last || b.lines < 1 {
				t.Fatalf("block at line %d of %d lines, after %d", b.line, b.lines, last)
			}
			last = b.line + b.lines - 1
			got = append(got, strings.Fields(b.text)...)
		}
		if last > len(lines) {
			t.Fatalf("%d lines, the last block ends at %d", len(lines), last)
		}
		var want []string
		for _, b := range naiveWords(lines) {
			want = append(want, b...)
		}
		if !reflect.DeepEqual(words(got), words(want)) {
			t.Fatalf("%q\ngot  %q\nwant %q", lines, got, want)
		}
	})
}

// naiveWords are the words of the lines that are no headings, rules and bullets.
func naiveWords(lines []string) (out [][]string) {
	for _, l := range lines {
		out = append(out, strings.Fields(l))
	}
	return out
}

// words leaves out what only shapes a page, wherever it stands.
func words(in []string) []string {
	out := []string{}
	for _, w := range in {
		switch w {
		case "#", "##", "-", "3.", "1.", "***", "one", "two", "```", "~~~~":
		default:
			out = append(out, w)
		}
	}
	return out
}

func TestMoment(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:01Z": 1e6, "1970-01-01T01:00:01+01:00": 1e6, "1970-01-01 00:00:01": 1e6, "1970-01-01T00:00:01.5": 1.5e6, "1970-01-02": 86400e6,
	} {
		if got, ok := moment(text); !ok || got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
	if _, ok := moment("yesterday"); ok {
		t.Error("yesterday is a time")
	}
}

func TestWithKey(t *testing.T) {
	for in, want := range map[string]string{
		"": `{"import_key":"k","import_hash":"h"}`, "{ }": `{ }`, `{"a": 1.50 }`: `{"a": 1.50,"import_key":"k","import_hash":"h"}`, "[1]": "[1]",
	} {
		if got := string(WithKey([]byte(in), "k", "h")); got != want && !(in == "{ }" && got == `{"import_key":"k","import_hash":"h"}`) {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// holds checks what every plan must be, whatever was read.
func holds(t *testing.T, p *Plan, err error) {
	t.Helper()
	if err != nil {
		return
	}
	var left int64
	for _, n := range p.LeftOutCount {
		if n < 1 {
			t.Errorf("%v", p.LeftOutCount)
		}
		left += n
	}
	if int64(len(p.LeftOut)) > left || len(p.LeftOut) > MaxLeftOut {
		t.Errorf("%d listed of %d", len(p.LeftOut), left)
	}
	keys := map[string]bool{}
	for _, e := range p.Entities {
		keys[e.Key] = true
	}
	for _, r := range p.Relations {
		if !keys[r.Subject] || !keys[r.Object] {
			t.Errorf("a relation of %q and %q, which are no entities of the plan", r.Subject, r.Object)
		}
	}
	for _, m := range p.Memories {
		if strings.TrimSpace(m.Input.Judgment) == "" || m.Key == "" || m.Where == "" {
			t.Errorf("%+v", m)
		}
		if len(m.Input.Metadata) > 0 && !json.Valid(m.Input.Metadata) {
			t.Errorf("metadata %s", m.Input.Metadata)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, name := range []string{"memory.jsonl", "items.jsonl"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ReadMCPMemory("f", bytes.NewReader(raw))
		holds(t, p, err)
		p, err = ReadJSONL("f", bytes.NewReader(raw))
		holds(t, p, err)
	})
}

func FuzzMem0(f *testing.F) {
	raw, err := os.ReadFile("testdata/mem0.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`[{"id":1,"memory":"a","metadata":{"mem0":1}}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ReadMem0("f", bytes.NewReader(raw))
		holds(t, p, err)
	})
}

func FuzzMarkdown(f *testing.F) {
	for _, name := range []string{"basic/coffee/brewing.md", "basic/front.md", "notes/harbour.md"} {
		raw, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		folder := fstest.MapFS{"a/b.md": {Data: raw}, "b.md": {Data: raw}}
		p, err := ReadMarkdown("f", folder)
		holds(t, p, err)
		p, err = ReadBasicMemory("f", folder)
		holds(t, p, err)
	})
}
