package agentfile_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/loci-memory/loci/internal/agentfile"
)

// A file is what a snapshot holds, in memory.
type file struct {
	Header   agentfile.Header
	Points   []agentfile.Point
	Versions []agentfile.PointVersion
	Edges    []agentfile.Edge
}

// write gives the file's bytes.
func (f *file) write(w io.Writer) (agentfile.Summary, error) {
	out, err := agentfile.NewWriter(w, &f.Header)
	if err != nil {
		return agentfile.Summary{}, err
	}
	for i := range f.Points {
		if err := out.Point(&f.Points[i]); err != nil {
			return agentfile.Summary{}, err
		}
	}
	for i := range f.Versions {
		if err := out.Version(&f.Versions[i]); err != nil {
			return agentfile.Summary{}, err
		}
	}
	for i := range f.Edges {
		if err := out.Edge(&f.Edges[i]); err != nil {
			return agentfile.Summary{}, err
		}
	}
	return out.Close()
}

func (f *file) bytes(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := f.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read gives what a file holds.
func read(r io.Reader) (*file, agentfile.Summary, error) {
	in, err := agentfile.NewReader(r)
	if err != nil {
		return nil, agentfile.Summary{}, err
	}
	f := &file{Header: *in.Header()}
	for {
		record, err := in.Next()
		if errors.Is(err, io.EOF) {
			return f, in.Summary(), nil
		}
		if err != nil {
			return nil, agentfile.Summary{}, err
		}
		switch x := record.(type) {
		case *agentfile.Point:
			f.Points = append(f.Points, *x)
		case *agentfile.PointVersion:
			f.Versions = append(f.Versions, *x)
		case *agentfile.Edge:
			f.Edges = append(f.Edges, *x)
		}
	}
}

// sample is a small file with everything in it that there is.
func sample() *file {
	return &file{
		Header: agentfile.Header{
			Namespace: "team", Scope: "记忆 <a> & \"b\"", Dimension: 3, Space: "e5", CreatedAt: 1767603600000000, Clock: 1767603600000001,
			Kinds: []string{agentfile.KindFact, agentfile.KindProcedure}, Settings: json.RawMessage(`{"keep_versions":10,"t":"<\u00e9>"}`),
		},
		Points: []agentfile.Point{
			{
				Kind: agentfile.KindFact, Key: 0, Content: "The harbour closes at nine.", Metadata: json.RawMessage(`{ "b": 1.50, "a": null }`),
				Evidence: json.RawMessage(`[{"source":"log","quote":"nine"}]`), Tags: []string{"harbour", "标签"}, Thread: "t", Position: new(int64(-4)),
				Created: 1, Updated: 2, Recorded: 3, ExpiresAt: new(int64(1 << 62)), ValidFrom: new(int64(-1)), ValidTo: new(int64(0)),
				HappenedAt: new(int64(7)), LastUsed: new(int64(8)), Confidence: 1, Version: 3, Vector: []float32{0.5, -0.25, 1e-38}, VectorText: 99,
			},
			{Kind: agentfile.KindFact, Key: 1<<64 - 1, Version: 1, Vector: []float32{0, 0, -1}},
			{
				Kind: agentfile.KindProcedure, Key: 7, Title: "moor the boat", Data: json.RawMessage(`{"steps":["fenders","lines"]}`), Confidence: 0.55,
				Uses: 300, Successes: 299, Version: 1<<63 - 1, Created: -1 << 63, Updated: 1<<63 - 1,
			},
		},
		Versions: []agentfile.PointVersion{
			{Kind: agentfile.KindFact, Key: 0, Version: 1, RecordedAt: 1, RecordedTo: 2, ValidTo: new(int64(5)), Title: "t", Content: "It closes at eight."},
			{Kind: agentfile.KindFact, Key: 0, Version: 2, RecordedAt: 2, RecordedTo: 3, ValidFrom: new(int64(6)), Metadata: json.RawMessage(`{"a":1}`)},
			{Kind: agentfile.KindProcedure, Key: 7, Version: 1, Data: json.RawMessage(`["lines"]`)},
		},
		Edges: []agentfile.Edge{
			{FromKind: agentfile.KindFact, From: 0, Type: "supersedes", ToKind: agentfile.KindFact, To: 1<<64 - 1, ID: 1<<64 - 2, CreatedAt: 5},
			{FromKind: agentfile.KindFact, From: 0, Type: "关于", ToKind: agentfile.KindEpisode, To: 4, Properties: json.RawMessage(`{"w":0.5}`)},
			{FromKind: agentfile.KindEpisode, From: 4, Type: "led to", ToKind: agentfile.KindProcedure, To: 7},
			{FromKind: agentfile.KindProcedure, From: 7, Type: "self", ToKind: agentfile.KindProcedure, To: 7},
		},
	}
}

// The parts of a file's bytes, as docs/format/agent-snapshot.md has them.
const (
	prefaceLen = 24
	headLen    = 20
	totalsLen  = 56
)

// blocks gives where the heads of a file's blocks are, as far as their lengths
// make sense.
func blocks(b []byte) (heads []int) {
	if len(b) < prefaceLen {
		return nil
	}
	le := binary.LittleEndian
	for at := prefaceLen + int(le.Uint32(b[12:])); at >= prefaceLen && at+headLen <= len(b); {
		heads = append(heads, at)
		n := int(le.Uint32(b[at+4:]))
		if n > len(b)-at-headLen {
			break
		}
		at += headLen + n
	}
	return heads
}

// reseal makes all checksums and the totals' length right again, so that damage
// reaches what lies behind them.
func reseal(b []byte) []byte {
	if len(b) < prefaceLen {
		return b
	}
	le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	if end := prefaceLen + int(le.Uint32(b[12:])); end >= prefaceLen && end <= len(b) {
		le.PutUint32(b[16:], crc32.Checksum(b[prefaceLen:end], table))
	}
	sum := crc32.Checksum(b[:20], table)
	le.PutUint32(b[20:], sum)
	for _, at := range blocks(b) {
		end := at + headLen + int(le.Uint32(b[at+4:]))
		if end <= len(b) {
			if b[at] == 4 && end-at == headLen+totalsLen {
				le.PutUint64(b[end-8:], uint64(len(b)))
			}
			le.PutUint32(b[at+12:], crc32.Checksum(b[at+headLen:end], table))
		}
		sum = crc32.Update(sum, table, b[at:at+16])
		le.PutUint32(b[at+16:], sum)
	}
	return b
}
