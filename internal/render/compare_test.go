package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCompare(t *testing.T) {
	core, working := items(rules, goal), items(log, plan)
	text, stable := Append(nil, core, working)
	gone, _ := Append(nil, core, items(plan))
	cut := Find(text, "w1")
	cases := []struct {
		name          string
		old           []byte
		size, stable  int
		text          []byte
		invalidated   int
		rewritten     int
		intact        bool
		commonAtLeast int
	}{
		{"the first text", nil, 0, 0, text, 0, 0, true, 0},
		{"nothing changed", text, len(text), stable, text, 0, 0, true, len(text)},
		{"nothing left of the old one", nil, len(text), stable, text, len(text), len(text), false, 0},
		{"a cut old one, which the page's removal follows", text[:cut], len(text), stable, gone, len(text) - cut, len(gone) - cut, true, cut},
		{"a cut within the prefix", text[:stable-1], len(text), stable, text, len(text) - stable + 1, len(text) - stable + 1, false, stable - 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := Delta{Common: c.commonAtLeast, Invalidated: c.invalidated, Rewritten: c.rewritten, Intact: c.intact}
			if got := Compare(c.old, c.size, c.stable, c.text); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "a")
		b := append(slices.Clone(a[:rapid.IntRange(0, len(a)).Draw(t, "shared")]), rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "b")...)
		want := 0
		for want < len(a) && want < len(b) && a[want] == b[want] {
			want++
		}
		if got := Common(a, b); got != want || Common(b, a) != want {
			t.Fatalf("%x and %x: got %d, want %d", a, b, got, want)
		}
	})
	// A difference at every place of blocks, words and a rest.
	for i := range 1100 {
		a, b := make([]byte, 1100), make([]byte, 1100)
		b[i] = 0x80
		if got := Common(a, b); got != i {
			t.Errorf("the first difference is at %d, got %d", i, got)
		}
	}
}

func TestFind(t *testing.T) {
	ids := []string{"a", "b", "w1", "", `q"\`, "\n,{\"id\":\"a\",", "灯塔", "\u2028", "ab", "a,", `a","version":1`}
	var list []Item
	for _, id := range ids {
		// Each page quotes the beginning of every other one's line.
		quoted := "\n"
		for _, other := range ids {
			quoted += "\n,{\"id\":" + string(AppendString(nil, other)) + ",\n{\"id\":\"" + other + "\","
		}
		list = append(list, Item{ID: id, Version: 1, Title: quoted, Tags: []string{quoted}, Content: quoted})
	}
	for split := range len(list) + 1 {
		text, _ := Append(nil, items(list[:split]...), items(list[split:]...))
		for i, it := range list {
			at := Find(text, it.ID)
			if want := naiveFind(text, it.ID); at != want || at < 0 {
				t.Fatalf("split %d: item %d is at %d, want %d", split, i, at, want)
			}
			if Find(text[:at], it.ID) != -1 {
				t.Errorf("split %d: item %d is still found in what is before it", split, i)
			}
		}
		for _, id := range []string{"c", "A", "a\"", "W1", "\xff"} {
			if at := Find(text, id); at != -1 {
				t.Errorf("%q, which is not there, was found at %d", id, at)
			}
		}
	}
	if at := Find(nil, "a"); at != -1 {
		t.Errorf("found at %d of nothing", at)
	}
}

// naiveFind goes from line to line.
func naiveFind(text []byte, id string) int {
	key := `{"id":` + naiveString(strings.ToValidUTF8(id, "\uFFFD")) + ","
	at := 0
	for i, line := range strings.SplitAfter(string(text), "\n") {
		if i > 0 && strings.HasPrefix(strings.TrimPrefix(line, ","), key) {
			return at
		}
		at += len(line)
	}
	return -1
}

func FuzzFind(f *testing.F) {
	text, _ := Append(nil, items(rules, goal, row(3)), items(log, plan))
	f.Add(text, "w1")
	f.Add(text[:300], "b")
	f.Add([]byte("\n,{\"id\":\"x\",\n{\"id\":\"x\","), "x")
	f.Add([]byte("{\"id\":\"x\","), "x")
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		at := Find(text, id)
		if at < -1 || at >= len(text) {
			t.Fatalf("found at %d of %d bytes", at, len(text))
		}
		// Texts of this package hold an id once; in others either place is good.
		if (at < 0) != (naiveFind(text, id) < 0) {
			t.Fatalf("found at %d, a walk from line to line at %d", at, naiveFind(text, id))
		}
		if at >= 0 && (text[at-1] != '\n' || !bytes.Contains(text[at:], AppendString(nil, id))) {
			t.Fatalf("at %d no item begins: %q", at, text[at-1:])
		}
	})
}

// large is a context of about 64 KiB with quotes and line ends as prose and code
// have them.
func large() (core, working [][]byte) {
	body := strings.Repeat("The lighthouse keeper said \"eight bells\".\n灯塔上的守夜人换班了。\n\tif err != nil { return err }\n", 15)
	for i := range 40 {
		it := Item{ID: "page-" + strings.Repeat("x", i), Version: int64(i + 1), Title: "title", Tags: []string{"log", "sea"}, Content: body}
		if i < 12 {
			core = append(core, AppendItem(nil, &it))
		} else {
			working = append(working, AppendItem(nil, &it))
		}
	}
	return core, working
}

func BenchmarkAppendItem(b *testing.B) {
	it := Item{ID: "page", Version: 7, Title: "title", Content: strings.Repeat("The lighthouse keeper said \"eight bells\".\n灯塔上的守夜人换班了。\n", 900)}
	var dst []byte
	for b.Loop() {
		dst = AppendItem(dst[:0], &it)
		b.SetBytes(int64(len(dst)))
	}
}

func BenchmarkAppend(b *testing.B) {
	core, working := large()
	var dst []byte
	for b.Loop() {
		dst, _ = Append(dst[:0], core, working)
		b.SetBytes(int64(len(dst)))
	}
}

func BenchmarkSize(b *testing.B) {
	core, working := large()
	for b.Loop() {
		Size(core, working)
	}
}

// The worst case: a change at the very end.
func BenchmarkCompare(b *testing.B) {
	core, working := large()
	old, stable := Append(nil, core, working)
	text := bytes.Clone(old)
	text[len(text)-4] ^= 1
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Compare(old, len(old), stable, text)
	}
}

func BenchmarkFind(b *testing.B) {
	core, working := large()
	text, _ := Append(nil, core, working)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Find(text, "absent")
	}
}
