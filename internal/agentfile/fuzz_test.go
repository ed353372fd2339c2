package agentfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
)

// checkInput holds a Reader to its word: what Check takes a Reader reads, and
// written again it is a file of the same content; nothing panics, and no input
// takes memory out of proportion.
func checkInput(t *testing.T, b []byte) {
	var sum *agentfile.Summary
	var err error
	if n := allocated(func() { _, sum, err = agentfile.Check(bytes.NewReader(b)) }); n > 16<<20+64*uint64(len(b)) {
		t.Fatalf("%d bytes take %d", len(b), n)
	}
	if err != nil {
		if code := errs.CodeOf(err); code != errs.Validation && code != errs.SchemaVersion || errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return
	}
	got, read1, err := read(bytes.NewReader(b))
	if err != nil || read1 != *sum {
		t.Fatalf("checked as %+v, read as %+v: %v", *sum, read1, err)
	}
	var out bytes.Buffer
	if _, err := got.write(&out); err != nil {
		t.Fatalf("cannot be written again: %v", err)
	}
	again, read2, err := read(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	read2.Bytes = sum.Bytes // headers have other spellings, and blocks may be shorter than they are written
	if d := cmp.Diff(got.Points, again.Points); d != "" || read2 != *sum || !cmp.Equal(got.Versions, again.Versions) || !cmp.Equal(got.Edges, again.Edges) {
		t.Fatalf("another content: %+v %+v %s", *sum, read2, d)
	}
	if was, is := recordsOf(b), recordsOf(out.Bytes()); !bytes.Equal(was, is) {
		t.Fatalf("the same records are\n%x and\n%x", was, is)
	}
}

// recordsOf gives the payloads of a whole file.
func recordsOf(b []byte) (out []byte) {
	for _, at := range blocks(b) {
		if b[at] < 4 {
			out = append(out, b[at+headLen:at+headLen+int(binary.LittleEndian.Uint32(b[at+4:]))]...)
		}
	}
	return out
}

// FuzzReader changes whole files, with their checksums as they come or made
// right.
func FuzzReader(f *testing.F) {
	whole := sample().bytes(f)
	f.Add(whole, false)
	f.Add(whole, true)
	f.Add((&file{Header: agentfile.Header{Kinds: allKinds}}).bytes(f), true)
	f.Add(whole[:prefaceLen], true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = reseal(bytes.Clone(b))
		}
		checkInput(t, b)
	})
}

// FuzzRecord changes records inside a file that is right otherwise.
func FuzzRecord(f *testing.F) {
	records := recordsOf(sample().bytes(f))
	var each [][]byte
	for len(records) > 0 {
		n := 4 + int(binary.LittleEndian.Uint32(records))
		each, records = append(each, records[4:n]), records[n:]
	}
	for _, seed := range [][3][]byte{{each[0], each[3], each[7]}, {each[2], each[5], each[9]}, {each[1]}, {nil, nil, each[8]}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	for _, seed := range [][3][]byte{{each[2], each[5], each[9]}, {each[1]}} {
		if _, _, err := agentfile.Check(bytes.NewReader(around(f, seed))); err != nil {
			f.Fatal("a seed is no file:", err)
		}
	}
	f.Fuzz(func(t *testing.T, point, version, edge []byte) {
		checkInput(t, around(t, [3][]byte{point, version, edge}))
	})
}

// around gives a file of a point, a version and an edge, as they are encoded;
// none that is empty.
func around(t testing.TB, records [3][]byte) []byte {
	le := binary.LittleEndian
	b := (&file{Header: sample().Header}).bytes(t)
	b = b[:blocks(b)[0]]
	head := func(section, payload, records int) {
		at := len(b)
		b = append(b, make([]byte, headLen)...)
		b[at] = byte(section)
		le.PutUint32(b[at+4:], uint32(payload))
		le.PutUint32(b[at+8:], uint32(records))
	}
	var totals [7]uint64
	for i, record := range records {
		if len(record) == 0 {
			continue
		}
		head(i+1, 4+len(record), 1)
		b = append(le.AppendUint32(b, uint32(len(record))), record...)
		totals[i+2] = 1
	}
	if point := records[0]; len(point) > 1 {
		totals[2] = 0
		totals[(point[0]-8)%3] = 1
		totals[5] = uint64(point[1] >> 7) // whether it has a vector
	}
	head(4, totalsLen, 0)
	for _, n := range totals {
		b = le.AppendUint64(b, n)
	}
	return reseal(append(b, "LOCIAGTE"...))
}
