package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew: every cache that holds a text of the old format is lost")

func items(list ...Item) [][]byte {
	var out [][]byte
	for i := range list {
		out = append(out, AppendItem(nil, &list[i]))
	}
	return out
}

func row(seq int64) Item {
	return Item{
		ID: fmt.Sprintf("i%d", seq), Version: 1, Index: true, Seq: seq,
		Title: fmt.Sprintf("step %d", seq), Summary: strings.Repeat("S", 40),
	}
}

var (
	rules = Item{ID: "a", Version: 1, Title: "rules", Content: strings.Repeat("R", 100)}
	goal  = Item{ID: "b", Version: 1, Title: "goal", Content: strings.Repeat("G", 60)}
	log   = Item{ID: "w1", Version: 1, Title: "log", Content: strings.Repeat("L", 200)}
	plan  = Item{ID: "w2", Version: 1, Title: "plan", Content: strings.Repeat("P", 80)}
	note  = Item{ID: "w3", Version: 1, Title: "note", Content: strings.Repeat("N", 50)}
)

func with(it Item, version int64, content string) Item {
	it.Version, it.Content = version, content
	return it
}

// hard is a context of everything that a serializer may be tempted to escape,
// reorder or drop.
func hard() (core, working [][]byte) {
	control := make([]byte, 0x20)
	for i := range control {
		control[i] = byte(i)
	}
	return items(
			Item{ID: `q"\/`, Version: 9223372036854775807, Title: "<b>&amp;</b>", Tags: []string{"a", `"`, "标签"}, Content: string(control) + "\x7f\u0080\u2028\u2029\ufeff\ufffd"},
			Item{ID: "大纲", Version: 12, Index: true, Seq: 7, Title: "里程碑 3–6", Summary: "起锚 · 守夜 · e\u0301 é"},
			Item{},
		), items(
			Item{ID: "emoji", Version: 2, Title: "👩‍👩‍👧‍👦", Tags: []string{}, Content: "🏴‍☠️\U0010ffff\r\n"},
			Item{ID: "json", Version: 3, Content: "]}\n],\"working\":[\n{\"id\":\"emoji\",\"version\":1}"},
		)
}

// The vectors are part of the format: they were worked out before the code.
func TestVectors(t *testing.T) {
	type text struct{ core, working [][]byte }
	base := text{items(rules, goal, row(3), row(4)), items(log, plan)}
	six := text{items(rules, goal, row(3), row(4), row(5), row(6), row(7), row(8)), items(log, plan)}
	folded := Item{ID: "m1", Version: 1, Index: true, Seq: 3, Title: "milestone 3–6", Summary: strings.Repeat("S", 60)}
	hardCore, hardWorking := hard()
	cases := []struct {
		name        string
		old, new    text
		size        int
		stable      int
		invalidated int
		rewritten   int
		intact      bool
	}{
		{"empty", text{}, text{}, 33, 17, 0, 0, true},
		{"base", base, base, 1013, 565, 0, 0, true},
		{"working page edited", base, text{base.core, items(log, with(plan, 2, strings.Repeat("Q", 80)))}, 1013, 565, 137, 137, true},
		{"page in", base, text{base.core, items(log, plan, note)}, 1140, 565, 2, 129, true},
		{"row added", base, text{items(rules, goal, row(3), row(4), row(5)), base.working}, 1131, 683, 448, 566, true},
		{"core page edited", base, text{items(with(rules, 2, strings.Repeat("r", 100)), goal, row(3), row(4)), base.working}, 1013, 565, 976, 976, false},
		{"page out", base, text{base.core, items(plan)}, 737, 565, 426, 150, true},
		{"page pinned", base, text{items(rules, goal, row(3), row(4), plan), items(log)}, 1013, 722, 448, 448, true},
		{"six rows", base, six, 1485, 1037, 448, 920, true},
		{"folded", six, text{items(rules, goal, folded, row(7), row(8)), base.working}, 1160, 712, 1148, 823, false},
		{"hard", text{}, text{hardCore, hardWorking}, 781, 516, 16, 764, true},
	}
	sums := map[string]string{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old, oldStable := Append(nil, c.old.core, c.old.working)
			got, stable := Append(nil, c.new.core, c.new.working)
			if len(got) != c.size || stable != c.stable {
				t.Errorf("got %d bytes, %d of them stable; want %d and %d", len(got), stable, c.size, c.stable)
			}
			d := Compare(old, len(old), oldStable, got)
			if d.Invalidated != c.invalidated || d.Rewritten != c.rewritten || d.Intact != c.intact {
				t.Errorf("got %+v, want %d invalidated, %d rewritten, intact %v", d, c.invalidated, c.rewritten, c.intact)
			}
			name := strings.ReplaceAll(c.name, " ", "-") + ".json"
			golden(t, name, got)
			sums[name] = Sum(got)
		})
	}
	var list strings.Builder
	for _, c := range cases {
		name := strings.ReplaceAll(c.name, " ", "-") + ".json"
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	golden(t, "SHA256SUMS", []byte(list.String()))
	if sum := sums["base.json"]; !strings.HasPrefix(sum, "bfbacfb42970") {
		t.Errorf("the base's sum is %s, want one that begins with bfbacfb42970", sum)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from byte %d on; the format is frozen. Got\n%s\nwant\n%s", path, Common(got, want), got, want)
	}
}

func TestAppendString(t *testing.T) {
	cases := []struct{ in, want string }{
		{"", `""`},
		{`a"b\c/d`, `"a\"b\\c/d"`},
		{"\n\r\t\b\f", `"\n\r\t\b\f"`},
		{"\x00\x01\x0b\x0e\x1a\x1f\x7f", `"\u0000\u0001\u000b\u000e\u001a\u001f` + "\x7f\""},
		{"<a href='x'>&", `"<a href='x'>&"`},
		{"\u2028灯塔\u2029", "\"\u2028灯塔\u2029\""},
		{"x\xff\xfey\xe7\x81z\xc0\x80", "\"x\ufffdy\ufffdz\ufffd\""},
	}
	for _, c := range cases {
		if got := string(AppendString([]byte("k:"), c.in)); got != "k:"+c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
}

// naiveString is the rule of AppendString, a character at a time.
func naiveString(s string) string {
	out := `"`
	for _, r := range s {
		if short := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}[r]; short != "" {
			out += short
		} else if r < 0x20 {
			out += fmt.Sprintf(`\u%04x`, r)
		} else {
			out += string(r)
		}
	}
	return out + `"`
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\x00\x1f\x7f", "灯塔\u2028😀", "\xff\xc0\x80a\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q gives %s: %v", s, got, err)
		}
		want := strings.ToValidUTF8(s, "\uFFFD")
		if back != want {
			t.Fatalf("%q was read back as %q", s, back)
		}
		if naive := naiveString(want); string(got) != naive {
			t.Fatalf("%q: got %s, want %s", s, got, naive)
		}
		if slices.ContainsFunc(got, func(c byte) bool { return c < 0x20 }) || !utf8.Valid(got) {
			t.Fatalf("%q gives %q", s, got)
		}
	})
}

// decoded is a text as a reader's JSON decoder sees it.
type decoded struct {
	VC            int `json:"vc"`
	Core, Working []struct {
		ID      string    `json:"id"`
		Version int64     `json:"version"`
		Mode    string    `json:"mode"`
		Seq     *int64    `json:"seq"`
		Title   *string   `json:"title"`
		Tags    *[]string `json:"tags"`
		Content *string   `json:"content"`
		Summary *string   `json:"summary"`
	}
}

func decode(t interface{ Fatalf(string, ...any) }, text []byte) decoded {
	var d decoded
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatalf("a text is no JSON: %v\n%s", err, text)
	}
	if dec.More() {
		t.Fatalf("something follows the JSON: %s", text)
	}
	return d
}

var (
	anyString = rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.SampledFrom([]rune("\x00\x1f\b\f\n\r\t\"\\/{}[],:<&\x7f\u0085\u2028\u2029\ufeff灯😀'")), 0, 12, -1),
		rapid.SampledFrom([]string{"", "\n],\"working\":[", "{\"id\":\"a\",", "\n,{\"id\":\"b\","}),
	)
	anyItem = rapid.Custom(func(t *rapid.T) Item {
		it := Item{
			ID: anyString.Draw(t, "id"), Version: rapid.Int64Min(1).Draw(t, "version"), Title: anyString.Draw(t, "title"),
			Index: rapid.Bool().Draw(t, "index"),
		}
		if it.Index {
			it.Seq, it.Summary = rapid.Int64Min(1).Draw(t, "seq"), anyString.Draw(t, "summary")
		} else {
			it.Tags, it.Content = rapid.SliceOfN(anyString, 0, 3).Draw(t, "tags"), anyString.Draw(t, "content")
		}
		return it
	})
)

func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		core := rapid.SliceOfN(anyItem, 0, 5).Draw(t, "core")
		working := rapid.SliceOfN(anyItem, 0, 5).Draw(t, "working")
		coreItems, workingItems := items(core...), items(working...)
		text, stable := Append([]byte("before"), coreItems, workingItems)
		if !bytes.HasPrefix(text, []byte("before")) {
			t.Fatalf("Append altered what it was to append to: %q", text)
		}
		text = text[len("before"):]

		if size, s := Size(coreItems, workingItems); size != len(text) || s != stable {
			t.Fatalf("Size gives %d and %d for %d bytes with %d stable", size, s, len(text), stable)
		}
		checkDecoded(t, text, core, working)
		checkLines(t, text, stable, coreItems, workingItems)

		// What is appended to working alters nothing but the closing; what is
		// appended to core alters nothing of the prefix.
		more := AppendItem(nil, new(anyItem.Draw(t, "more")))
		longer, s := Append(nil, coreItems, append(slices.Clone(workingItems), more))
		if s != stable || Common(text, longer) < len(text)-len("]}") {
			t.Fatalf("an item more in working altered byte %d of %d", Common(text, longer), len(text))
		}
		longer, s = Append(nil, append(slices.Clone(coreItems), more), workingItems)
		if s <= stable || Common(text, longer) < stable {
			t.Fatalf("an item more in core altered byte %d of a prefix of %d", Common(text, longer), stable)
		}
	})
}

func checkDecoded(t *rapid.T, text []byte, core, working []Item) {
	d := decode(t, text)
	if d.VC != 1 || len(d.Core) != len(core) || len(d.Working) != len(working) {
		t.Fatalf("vc %d with %d and %d items, want 1 with %d and %d", d.VC, len(d.Core), len(d.Working), len(core), len(working))
	}
	for i, got := range append(d.Core, d.Working...) {
		want := append(slices.Clone(core), working...)[i]
		if got.ID != want.ID || got.Version != want.Version || got.Title == nil || *got.Title != want.Title {
			t.Fatalf("item %d is %+v, want %+v", i, got, want)
		}
		if want.Index {
			if got.Mode != "index" || got.Seq == nil || *got.Seq != want.Seq || got.Summary == nil || *got.Summary != want.Summary || got.Tags != nil || got.Content != nil {
				t.Fatalf("item %d is %+v, want %+v", i, got, want)
			}
			continue
		}
		if got.Mode != "full" || got.Content == nil || *got.Content != want.Content || got.Tags == nil || !slices.Equal(*got.Tags, want.Tags) || got.Seq != nil || got.Summary != nil {
			t.Fatalf("item %d is %+v, want %+v", i, got, want)
		}
	}
}

// checkLines holds the text's lines against its items: one each, in order, and a
// prefix that ends with one.
func checkLines(t *rapid.T, text []byte, stable int, core, working [][]byte) {
	lines := SplitLines(text)
	if !bytes.Equal(bytes.Join(lines, nil), text) {
		t.Fatalf("the lines put together are not the text")
	}
	if want := 3 + len(core) + len(working); len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, line := range lines[:len(lines)-1] {
		if line[len(line)-1] != '\n' || bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if prefix := bytes.Join(lines[:1+len(core)], nil); len(prefix) != stable {
		t.Fatalf("the lines up to the end of core take %d bytes, the prefix %d", len(prefix), stable)
	}
	for i, it := range core {
		if line := bytes.TrimSuffix(bytes.TrimPrefix(lines[1+i], []byte(",")), []byte("\n")); !bytes.Equal(line, it) {
			t.Fatalf("the line of core item %d is %q", i, line)
		}
	}
}

func TestTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var core, working Tally
		var coreItems, workingItems [][]byte
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			tally, list := &core, &coreItems
			if rapid.Bool().Draw(t, "working") {
				tally, list = &working, &workingItems
			}
			if n := len(*list); n > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, n-1).Draw(t, "which")
				tally.Remove(len((*list)[i]))
				*list = slices.Delete(*list, i, i+1)
			} else {
				it := AppendItem(nil, new(anyItem.Draw(t, "item")))
				tally.Add(len(it))
				*list = append(*list, it)
			}
			total, stable := SizeOf(core, working)
			text, s := Append(nil, coreItems, workingItems)
			if total != len(text) || stable != s {
				t.Fatalf("counted %d and %d, the text has %d and %d", total, stable, len(text), s)
			}
		}
	})
}
