package agentfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/loci-memory/loci/internal/agentfile"
)

// The memory that the benchmarks write and read.
const (
	benchPoints    = 100_000
	benchDimension = 384
)

func benchHeader() *agentfile.Header {
	return &agentfile.Header{Namespace: "n", Scope: "s", Dimension: benchDimension, Kinds: []string{agentfile.KindFact}}
}

// benchSamples are points of the size that facts have. Their keys and vectors
// are replaced in turn.
func benchSamples() []agentfile.Point {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]agentfile.Point, 64)
	for i := range out {
		v := make([]float32, benchDimension)
		for j := range v {
			v[j] = float32(r.NormFloat64())
		}
		out[i] = agentfile.Point{
			Kind: agentfile.KindFact, Content: fmt.Sprintf("The lighthouse keeper of station %d writes the wind, the swell and the ships into the log.", i),
			Metadata: json.RawMessage(fmt.Sprintf(`{"station":%d,"language":"en","source":"log"}`, i)), Tags: []string{"log", "station"},
			Created: 1767603600000000, Updated: 1767603600000000, Recorded: 1767603600000000, ExpiresAt: new(int64(1 << 60)),
			Confidence: 1, Version: 1, Vector: v, VectorText: r.Uint64(),
		}
	}
	return out
}

func writeBench(b *testing.B, w io.Writer, points []agentfile.Point) int64 {
	out, err := agentfile.NewWriter(w, benchHeader())
	if err != nil {
		b.Fatal(err)
	}
	for i := range benchPoints {
		p := &points[i%len(points)]
		p.Key = uint64(i)
		if err := out.Point(p); err != nil {
			b.Fatal(err)
		}
	}
	sum, err := out.Close()
	if err != nil {
		b.Fatal(err)
	}
	return sum.Bytes
}

// BenchmarkWriter writes 100,000 points with 384 numbers each.
func BenchmarkWriter(b *testing.B) {
	points := benchSamples()
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(writeBench(b, io.Discard, points))
	}
}

// BenchmarkReader reads and checks them.
func BenchmarkReader(b *testing.B) {
	var file bytes.Buffer
	b.SetBytes(writeBench(b, &file, benchSamples()))
	b.ReportAllocs()
	for b.Loop() {
		in, err := agentfile.NewReader(bytes.NewReader(file.Bytes()))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, err := in.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != benchPoints {
			b.Fatalf("%d points", n)
		}
	}
}
