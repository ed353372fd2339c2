package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/modelfile"
)

func write(t testing.TB, sections ...modelfile.Section) string {
	t.Helper()
	var b bytes.Buffer
	if err := modelfile.Write(&b, sections); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// resum gives the file with the checksums of header and directory made right
// again, so that what lies behind them gets looked at.
func resum(file []byte) string {
	table := crc32.MakeTable(crc32.Castagnoli)
	le := binary.LittleEndian
	if end := 32 + 48*int(le.Uint32(file[12:])); end <= len(file) {
		le.PutUint32(file[24:], crc32.Checksum(file[32:end], table))
	}
	le.PutUint32(file[28:], crc32.Checksum(file[:28], table))
	return string(file)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[!-~]{1,24}`), 0, 8, rapid.ID[string]).Draw(t, "names")
		var want []modelfile.Section
		for _, name := range names {
			want = append(want, modelfile.Section{Name: name, Data: string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, name))})
		}
		var b bytes.Buffer
		if err := modelfile.Write(&b, want); err != nil {
			t.Fatal(err)
		}
		f, err := modelfile.Open(b.String())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, f.Sections()); d != "" {
			t.Fatal(d)
		}
		if err := f.Verify(); err != nil {
			t.Fatal(err)
		}
		for _, s := range want {
			if got, ok := f.Section(s.Name); !ok || got != s.Data {
				t.Fatalf("section %s is %q, %v", s.Name, got, ok)
			}
		}
		if _, ok := f.Section(""); ok {
			t.Fatal("a section without a name")
		}
	})
}

// Every single byte that is changed, and every length that is cut, is noticed
// by Open or by Verify.
func TestDamage(t *testing.T) {
	whole := write(t, modelfile.Section{Name: "one", Data: "first"}, modelfile.Section{Name: "two", Data: "second"},
		modelfile.Section{Name: "empty"})
	check := func(data string) error {
		f, err := modelfile.Open(data)
		if err != nil {
			return err
		}
		return f.Verify()
	}
	for i := range len(whole) {
		damaged := []byte(whole)
		damaged[i] ^= 0x20
		if err := check(string(damaged)); !errors.Is(err, modelfile.ErrFormat) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if err := check(whole[:i]); !errors.Is(err, modelfile.ErrFormat) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	if err := check(whole + "x"); !errors.Is(err, modelfile.ErrFormat) {
		t.Errorf("a byte too many: %v", err)
	}
}

// Checksums that are right do not make a directory right.
func TestDirectoryWithRightSums(t *testing.T) {
	whole := write(t, modelfile.Section{Name: "one", Data: "first"}, modelfile.Section{Name: "two", Data: "second"})
	le := binary.LittleEndian
	for name, change := range map[string]func([]byte){
		"version":                    func(b []byte) { le.PutUint32(b[8:], 2) },
		"count beyond the file":      func(b []byte) { le.PutUint32(b[12:], 900) },
		"count of billions":          func(b []byte) { le.PutUint32(b[12:], 1<<32-1) },
		"a section fewer":            func(b []byte) { le.PutUint32(b[12:], 1) },
		"length of the file":         func(b []byte) { le.PutUint64(b[16:], 1<<40) },
		"one name twice":             func(b []byte) { copy(b[32:], "two") },
		"no name":                    func(b []byte) { copy(b[32:], "\x00\x00\x00") },
		"a name with a gap":          func(b []byte) { copy(b[32:], "o\x00e") },
		"a name with a space":        func(b []byte) { copy(b[32:], "o e") },
		"an offset not aligned":      func(b []byte) { le.PutUint64(b[32+24:], 129) },
		"an offset beyond the end":   func(b []byte) { le.PutUint64(b[32+24:], 1<<63) },
		"sections that overlap":      func(b []byte) { copy(b[80+24:88+24], b[32+24:]) },
		"a length beyond the end":    func(b []byte) { le.PutUint64(b[80+32:], 1<<63) },
		"a length that is too short": func(b []byte) { le.PutUint64(b[80+32:], 1) },
		"the unused number":          func(b []byte) { b[32+44] = 1 },
		"bytes between sections":     func(b []byte) { b[len(b)-10] = 1 },
	} {
		b := []byte(whole)
		change(b)
		if _, err := modelfile.Open(resum(b)); !errors.Is(err, modelfile.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	many := make([]modelfile.Section, modelfile.MaxSections+1)
	for name, sections := range map[string][]modelfile.Section{
		"no name":         {{}},
		"a long name":     {{Name: "abcdefghijklmnopqrstuvwxy"}},
		"a space":         {{Name: "a b"}},
		"not ASCII":       {{Name: "表"}},
		"one name twice":  {{Name: "a"}, {Name: "b"}, {Name: "a"}},
		"a zero at end":   {{Name: "a\x00"}},
		"a zero, then ab": {{Name: "a\x00b"}},
		"too many":        many,
	} {
		if err := modelfile.Write(io.Discard, sections); !errors.Is(err, modelfile.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteGivesTheWritersError(t *testing.T) {
	sections := []modelfile.Section{{Name: "one", Data: "first"}, {Name: "two", Data: "second"}}
	for n := range len(write(t, sections...)) {
		if err := modelfile.Write(&shortWriter{n}, sections); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

func TestNeed(t *testing.T) {
	f, err := modelfile.Open(write(t, modelfile.Section{Name: "a", Data: "1"}, modelfile.Section{Name: "b", Data: "2"}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Need("b", "a"); err != nil || got[0] != "2" || got[1] != "1" {
		t.Error(got, err)
	}
	if _, err := f.Need("a", "c"); !errors.Is(err, modelfile.ErrFormat) {
		t.Error(err)
	}
}

func TestCard(t *testing.T) {
	want := modelfile.Card{Name: "m", Version: "1", Licence: "MIT", Source: "somewhere", SHA256: "00", Dimension: 384,
		MaxTokens: 512, Query: "q: ", Passage: "p: ", Layers: 12, Heads: 12, Intermediate: 1536, Epsilon: 1e-12}
	s, err := want.Section()
	if err != nil {
		t.Fatal(err)
	}
	f, err := modelfile.Open(write(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Card(); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "{", "[]", `{"name":"m","version":"1"}`, `{"name":"m","version":"1","dimension":-1}`,
		`{"name":"","version":"1","dimension":3}`, `{"name":"m","dimension":3}`,
		`{"name":"m","version":"1","dimension":3,"max_tokens":-1}`, `{"name":"m","version":"1","dimension":1e99}`} {
		f, err := modelfile.Open(write(t, modelfile.Section{Name: modelfile.SectionCard, Data: bad}))
		if err != nil {
			t.Fatal(err)
		}
		if c, err := f.Card(); !errors.Is(err, modelfile.ErrFormat) {
			t.Errorf("%s: %+v, %v", bad, c, err)
		}
	}
	none, err := modelfile.Open(write(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Card(); !errors.Is(err, modelfile.ErrFormat) {
		t.Error(err)
	}
}

// A file that can be opened is the file that Write makes of its sections, but
// for the sums of the sections, which Verify looks at.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(write(f, modelfile.Section{Name: "one", Data: "first"}, modelfile.Section{Name: "two", Data: "second"})))
	f.Add([]byte(write(f)))
	f.Add([]byte(modelfile.Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		data := string(b)
		if len(b) >= 32 {
			data = resum(b)
		}
		file, err := modelfile.Open(data)
		if err != nil {
			if !errors.Is(err, modelfile.ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		again := write(t, file.Sections()...)
		if damaged := file.Verify(); (damaged == nil) != (again == data) {
			t.Fatalf("verify says %v, and the file written again is the same: %v", damaged, again == data)
		}
	})
}
