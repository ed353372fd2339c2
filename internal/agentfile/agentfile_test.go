package agentfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
)

var update = flag.Bool("update", false, "write golden files that are missing; one that is there is never replaced")

// A file of version 1, as it was written once, stays readable, and the same
// content is still written as the same bytes.
func TestGolden(t *testing.T) {
	name := filepath.Join("testdata", "v1.loci")
	if *update {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(sample().bytes(t)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, sum, err := read(bytes.NewReader(golden))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample(), got); d != "" {
		t.Error(d)
	}
	want := agentfile.Summary{Facts: 2, Procedures: 1, Versions: 3, Edges: 4, Vectors: 2, Bytes: int64(len(golden))}
	if sum != want || sum.Points() != 3 {
		t.Errorf("it holds %+v", sum)
	}
	if agentfile.Version == 1 && !bytes.Equal(golden, sample().bytes(t)) {
		t.Error("the same content is written in another way")
	}
}

// drawJSON draws a JSON text, in any spelling.
func drawJSON(array bool) *rapid.Generator[json.RawMessage] {
	texts := []string{"", "", "{}", `{"a":1}`, ` { "a" : [1.0, 1e2, null], "é" : "<\u2028>" } ` + "\n", `{"x":{"y":{"z":"` + strings.Repeat("长", 50) + `"}}}`}
	if array {
		texts = append(texts, "[]", `[{"source":"s"}]`)
	}
	return rapid.Map(rapid.SampledFrom(texts), func(s string) json.RawMessage {
		if s == "" {
			return nil
		}
		return json.RawMessage(s)
	})
}

func drawSome() *rapid.Generator[*int64] { return rapid.Ptr(rapid.Int64(), true) }

// drawText draws text; some of it fills a block or more than one.
func drawText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.String().Draw(t, "text")
		if rapid.IntRange(0, 40).Draw(t, "long") == 0 {
			s += strings.Repeat("lang ", rapid.IntRange(1000, 200_000).Draw(t, "words"))
		}
		return s
	})
}

var allKinds = []string{agentfile.KindFact, agentfile.KindEpisode, agentfile.KindProcedure}

// drawKey draws keys small and large, so that they meet.
func drawKey() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64())
}

func drawVector(dimension int) *rapid.Generator[[]float32] {
	return rapid.Custom(func(t *rapid.T) []float32 {
		if rapid.IntRange(0, 3).Draw(t, "none") == 0 || dimension == 0 {
			return nil
		}
		v := rapid.SliceOfN(rapid.Float32Range(-3e38, 3e38), dimension, dimension).Draw(t, "vector")
		if !slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
			v[rapid.IntRange(0, dimension-1).Draw(t, "axis")] = 1e-45
		}
		return v
	})
}

func drawPoint(t *rapid.T, kind string, key uint64, dimension int) agentfile.Point {
	p := agentfile.Point{
		Kind: kind, Key: key, Title: drawText().Draw(t, "title"), Content: drawText().Draw(t, "content"),
		Data: drawJSON(true).Draw(t, "data"), Metadata: drawJSON(false).Draw(t, "metadata"), Evidence: drawJSON(true).Draw(t, "evidence"),
		Thread: rapid.String().Draw(t, "thread"), Position: drawSome().Draw(t, "position"),
		Created: rapid.Int64().Draw(t, "created"), Updated: rapid.Int64().Draw(t, "updated"), Recorded: rapid.Int64().Draw(t, "recorded"),
		ExpiresAt: drawSome().Draw(t, "expires"), ValidFrom: drawSome().Draw(t, "from"), ValidTo: drawSome().Draw(t, "to"),
		HappenedAt: drawSome().Draw(t, "happened"), LastUsed: drawSome().Draw(t, "used"), Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"),
		Uses: rapid.Int64Range(0, 1<<63-1).Draw(t, "uses"), Version: rapid.Int64Range(1, 1<<63-1).Draw(t, "version"), Vector: drawVector(dimension).Draw(t, "v"),
	}
	p.Successes = rapid.Int64Range(0, p.Uses).Draw(t, "successes")
	if tags := rapid.SliceOfN(rapid.StringN(1, 20, -1), 0, 4).Draw(t, "tags"); len(tags) > 0 {
		p.Tags = tags
	}
	if p.Vector != nil {
		p.VectorText = rapid.Uint64().Draw(t, "fingerprint")
	}
	return p
}

// drawFile draws a file that obeys the rules.
func drawFile(t *rapid.T) *file {
	f := &file{Header: agentfile.Header{
		Namespace: rapid.String().Draw(t, "namespace"), Scope: rapid.String().Draw(t, "scope"), Space: rapid.String().Draw(t, "space"),
		Dimension: rapid.IntRange(0, 5).Draw(t, "dimension"), CreatedAt: rapid.Int64().Draw(t, "at"), Clock: rapid.Int64().Draw(t, "clock"),
		Settings: rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"a":[1,"<>"]}`)}).Draw(t, "settings"),
	}}
	held := rapid.IntRange(1, 7).Draw(t, "kinds")
	type end struct {
		kind int
		key  uint64
	}
	var there, ends []end
	for k, kind := range allKinds {
		for _, key := range drawKeys(t) {
			ends = append(ends, end{k, key})
			if held>>k&1 == 1 {
				there = append(there, end{k, key})
				f.Points = append(f.Points, drawPoint(t, kind, key, f.Header.Dimension))
			}
		}
		if held>>k&1 == 1 {
			f.Header.Kinds = append(f.Header.Kinds, kind)
		}
	}
	for _, p := range there {
		for _, version := range drawVersions(t) {
			f.Versions = append(f.Versions, agentfile.PointVersion{
				Kind: allKinds[p.kind], Key: p.key, Version: version, RecordedAt: rapid.Int64().Draw(t, "at"), RecordedTo: rapid.Int64().Draw(t, "to"),
				ValidFrom: drawSome().Draw(t, "from"), ValidTo: drawSome().Draw(t, "until"), Title: drawText().Draw(t, "title"),
				Content: drawText().Draw(t, "content"), Data: drawJSON(true).Draw(t, "data"), Metadata: drawJSON(false).Draw(t, "metadata"),
			})
		}
	}
	for _, from := range ends {
		types := rapid.SliceOfNDistinct(rapid.StringN(1, 3, -1), 0, 3, rapid.ID[string]).Draw(t, "types")
		slices.Sort(types)
		for _, kind := range types {
			for _, to := range ends {
				if held>>from.kind&1 == 0 && held>>to.kind&1 == 0 || rapid.Bool().Draw(t, "skip") {
					continue
				}
				f.Edges = append(f.Edges, agentfile.Edge{
					FromKind: allKinds[from.kind], From: from.key, Type: kind, ToKind: allKinds[to.kind], To: to.key,
					ID: rapid.Uint64().Draw(t, "id"), CreatedAt: rapid.Int64().Draw(t, "created"), Properties: drawJSON(false).Draw(t, "properties"),
				})
			}
		}
	}
	return f
}

func drawKeys(t *rapid.T) []uint64 {
	keys := rapid.SliceOfNDistinct(drawKey(), 0, 4, rapid.ID[uint64]).Draw(t, "keys")
	slices.Sort(keys)
	return keys
}

func drawVersions(t *rapid.T) []int64 {
	versions := rapid.SliceOfNDistinct(rapid.Int64Range(1, 1<<63-1), 0, 2, rapid.ID[int64]).Draw(t, "versions")
	slices.Sort(versions)
	return versions
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFile(t)
		var b bytes.Buffer
		written, err := want.write(&b)
		if err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		if written.Bytes != int64(len(data)) || written.Points() != int64(len(want.Points)) || written.Versions != int64(len(want.Versions)) ||
			written.Edges != int64(len(want.Edges)) {
			t.Fatalf("%d bytes are written as %+v", len(data), written)
		}
		got, sum, err := read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		header, checked, err := agentfile.Check(bytes.NewReader(data))
		if err != nil || *checked != written || sum != written || !cmp.Equal(*header, want.Header) {
			t.Fatalf("checked as %+v %+v, read as %+v, written as %+v: %v", header, checked, sum, written, err)
		}
	})
}

// A reader that gives little at a time, or its last bytes along with the end,
// is as good as one that gives all.
func TestReadersOfOtherHabits(t *testing.T) {
	data := sample().bytes(t)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"a byte at a time": iotest.OneByteReader, "half of it": iotest.HalfReader, "the end with the data": iotest.DataErrReader,
	} {
		got, _, err := read(wrap(bytes.NewReader(data)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(sample(), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What a reader gives belongs to the caller.
func TestRecordsAreTheCallers(t *testing.T) {
	f := sample()
	p := f.Points[0]
	f.Header.Kinds = []string{agentfile.KindFact}
	f.Versions, f.Edges, f.Points = nil, nil, nil
	for key := range uint64(2000) { // a few blocks
		p.Key = key
		f.Points = append(f.Points, p)
	}
	in, err := agentfile.NewReader(bytes.NewReader(f.bytes(t)))
	if err != nil {
		t.Fatal(err)
	}
	first, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	got := first.(*agentfile.Point)
	if _, err := in.Next(); err != nil {
		t.Fatal(err)
	}
	got.Metadata = append(got.Metadata, "over the next one"...)
	if d := cmp.Diff(p.Evidence, got.Evidence); d != "" {
		t.Error(d)
	}
	got.Metadata = p.Metadata
	for {
		if _, err := in.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	p.Key = 0
	if d := cmp.Diff(&p, got); d != "" {
		t.Error(d)
	}
}

// An empty memory is a file too.
func TestEmpty(t *testing.T) {
	f := &file{Header: agentfile.Header{Kinds: []string{agentfile.KindEpisode}}}
	got, sum, err := read(bytes.NewReader(f.bytes(t)))
	if err != nil || sum.Points() != 0 || !cmp.Equal(f, got) {
		t.Errorf("%+v %+v %v", got, sum, err)
	}
}

// A Writer passes on what the writer below fails with, and stays failed.
func TestWriterFails(t *testing.T) {
	whole := sample().bytes(t)
	for n := range len(whole) {
		if _, err := sample().write(&shortWriter{left: n}); !errors.Is(err, errs.IO) || !errors.Is(err, errFull) {
			t.Fatalf("room for %d bytes: %v", n, err)
		}
	}
	if _, err := sample().write(&shortWriter{left: 100, silent: true}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that keeps quiet: %v", err)
	}
	if _, err := sample().write(&shortWriter{left: 0, err: errs.New(errs.Canceled, "stopped")}); errs.CodeOf(err) != errs.Canceled {
		t.Errorf("an error that has a code: %v", err)
	}
	out, err := agentfile.NewWriter(&shortWriter{left: 600}, &agentfile.Header{Kinds: allKinds})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Point(&agentfile.Point{Kind: agentfile.KindFact, Version: 1, Content: strings.Repeat("x", 600)}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Close(); !errors.Is(err, errFull) {
		t.Errorf("closed with %v", err)
	}
	if err := out.Point(&agentfile.Point{Kind: agentfile.KindFact, Key: 1, Version: 1}); !errors.Is(err, errFull) {
		t.Errorf("a point behind a failure: %v", err)
	}
}

var errFull = errors.New("full")

type shortWriter struct {
	left   int
	silent bool
	err    error
}

func (w *shortWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return len(p), nil
	}
	n := w.left
	w.left = 0
	switch {
	case w.silent:
		return n, nil
	case w.err != nil:
		return n, w.err
	}
	return n, errFull
}

// A Reader passes on what the reader below fails with, wherever that happens.
func TestReaderFails(t *testing.T) {
	whole := sample().bytes(t)
	for n := range len(whole) + 1 {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(errFull))
		if _, _, err := agentfile.Check(r); errs.CodeOf(err) != errs.IO || !errors.Is(err, errFull) {
			t.Fatalf("failing at %d: %v", n, err)
		}
	}
	r := io.MultiReader(bytes.NewReader(whole[:300]), iotest.ErrReader(errs.New(errs.Canceled, "stopped")))
	if _, _, err := agentfile.Check(r); errs.CodeOf(err) != errs.Canceled {
		t.Errorf("an error that has a code: %v", err)
	}
	if _, _, err := agentfile.Check(io.MultiReader(bytes.NewReader(whole), idle{})); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing and no end: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// A Writer that is closed takes nothing more.
func TestClosed(t *testing.T) {
	out, err := agentfile.NewWriter(io.Discard, &agentfile.Header{Kinds: allKinds})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Point(&agentfile.Point{Kind: agentfile.KindFact, Version: 1}); !errors.Is(err, errs.Closed) {
		t.Error(err)
	}
	if _, err := out.Close(); !errors.Is(err, errs.Closed) {
		t.Error(err)
	}
}

// A failure in the middle of a block's turn is as final as any, for a Writer and
// for a Reader.
func TestFailuresStay(t *testing.T) {
	out, err := agentfile.NewWriter(&shortWriter{left: 300_000}, &agentfile.Header{Kinds: allKinds})
	if err != nil {
		t.Fatal(err)
	}
	p := agentfile.Point{Kind: agentfile.KindFact, Version: 1, Content: strings.Repeat("x", 200_000)}
	var failed error
	for ; failed == nil; p.Key++ {
		failed = out.Point(&p)
	}
	if p.Key != 3 || !errors.Is(failed, errFull) {
		t.Errorf("point %d: %v", p.Key, failed)
	}
	if _, err := out.Close(); err != failed {
		t.Errorf("closed with %v", err)
	}

	whole := sample().bytes(t)
	in, err := agentfile.NewReader(bytes.NewReader(whole[:len(whole)-100]))
	if err != nil {
		t.Fatal(err)
	}
	for failed = nil; failed == nil; {
		_, failed = in.Next()
	}
	if record, err := in.Next(); record != nil || err != failed || errors.Is(err, io.EOF) {
		t.Errorf("after %v: %v %v", failed, record, err)
	}
}
