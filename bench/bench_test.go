package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets Run start this test's own program as its fresh process.
func TestMain(m *testing.M) {
	flag.Parse()
	if args := flag.Args(); len(args) == 3 && args[0] == "first-answer" {
		o, err := FirstAnswer(context.Background(), args[1], args[2])
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(o)
		}
		if err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every phase on a small corpus: the figures mean nothing, but none may be
// missing.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	loaded := 0
	r, err := Run(t.Context(), Options{
		Records: 2000, Dir: dir, Out: &log,
		Progress: func(done, _ int) { loaded = done },
		Fresh:    []string{os.Args[0], "first-answer"},
		Model:    &Model{"made up as well", newClustered(2)},
		samples:  60, writes: 25,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if loaded != 2000 {
		t.Errorf("progress ended at %d", loaded)
	}
	for name, p := range map[string]*Throughput{"ingest": r.Ingest, "single": r.Single, "parallel": r.Parallel, "rebuild": r.Rebuild} {
		if p == nil || p.PerSecond <= 0 || p.Records == 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if len(r.Spaced) != 3 || r.VectorSync == nil || len(r.Vector) != 3*len(filters()) || len(r.Embed) != 3 {
		t.Errorf("%d, %v, %d and %d figures of vectors", len(r.Spaced), r.VectorSync, len(r.Vector), len(r.Embed))
	}
	for _, v := range r.Vector {
		if v.Latency.P50 <= 0 || v.Path == "vector" && (v.Recall < 0.9 || v.Recall > 1.000001) {
			t.Errorf("%+v", v)
		}
	}
	if len(r.Search) != len(Classes())*len(filters()) {
		t.Errorf("%d search figures", len(r.Search))
	}
	for _, s := range r.Search {
		if s.Latency.Samples < 60 || s.Latency.P50 <= 0 || s.Latency.P95 < s.Latency.P50 {
			t.Errorf("%s, %s: %+v", s.Class, s.Filter, s.Latency)
		}
		if s.Filter == "none" && s.Hits < 1 {
			t.Errorf("%s finds %.2f records on average", s.Class, s.Hits)
		}
	}
	if r.Open == nil || !r.Open.Fresh || r.Open.FirstAnswerMS < r.Open.OpenMS || r.Open.OpenMS <= 0 {
		t.Errorf("open: %+v", r.Open)
	}
	if r.Disk == nil || r.Disk.Bytes < r.Bytes || len(r.Disk.Parts) == 0 {
		t.Errorf("disk: %+v of %d bytes of text", r.Disk, r.Bytes)
	}

	var text, doc bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&doc)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine", "batches of 1,000", "8 goroutines", string(ChineseQuestion), "0.1 %", "open ", "disk "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text has no %q", want)
		}
	}
	for l := range strings.Lines(text.String()) {
		if len(l) > 121 {
			t.Errorf("a line of %d bytes: %s", len(l), l)
		}
	}
	var back Report
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back.Ingest == nil {
		t.Errorf("JSON does not read back: %v", err)
	}
	t.Logf("\n%s", text.String())

	again, err := Run(t.Context(), Options{Records: 2000, Dir: dir, Phases: []Phase{PhaseOpen}})
	if err != nil {
		t.Fatal(err)
	}
	if again.Ingest != nil || again.Search != nil || again.Open == nil || again.Open.Fresh {
		t.Errorf("a second run over the same store: %+v", again)
	}
	if _, err := Run(t.Context(), Options{Records: 100_000, Dir: dir}); err == nil {
		t.Error("a store of another size passed")
	}
}

func TestRunRefusesNonsense(t *testing.T) {
	for _, o := range []Options{{Records: 3}, {Phases: []Phase{"dance"}}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v passed", o)
		}
	}
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := 1; i <= 100; i++ {
		hundred = append(hundred, time.Duration(i))
	}
	for _, c := range []struct {
		samples []time.Duration
		p       float64
		want    time.Duration
	}{
		{hundred, 0.50, 50}, {hundred, 0.95, 95}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
		{hundred[:1], 0.99, 1}, {hundred[:2], 0.5, 1}, {hundred[:3], 0.5, 2}, {nil, 0.5, 0},
	} {
		if got := percentile(c.samples, c.p); got != c.want {
			t.Errorf("percentile %v of %d samples is %d, want %d", c.p, len(c.samples), got, c.want)
		}
	}
	l := newLatency([]time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond})
	if l.Samples != 3 || l.P50 != 2000 || l.P99 != 3000 || l.Max != 3000 {
		t.Errorf("%+v", l)
	}
}

func TestMeterCounts(t *testing.T) {
	var m meter
	var keep []byte
	if err := m.measure(func() error {
		keep = make([]byte, 1<<20)
		for begin := time.Now(); time.Since(begin) < 30*time.Millisecond; {
			keep[0]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if m.allocated < 1<<20 || m.wall < 30*time.Millisecond || m.cpu <= 0 {
		t.Errorf("%+v", m)
	}
	p := m.throughput(10)
	if p.PerSecond <= 0 || p.PerSecond > 334 || p.AllocBytes < 1<<20/10 {
		t.Errorf("%+v", p)
	}
	if ratio(1, 0) != 0 {
		t.Error("a division by zero")
	}
}

func TestDuration(t *testing.T) {
	for us, want := range map[float64]string{3.14: "3.1 us", 512: "512 us", 1500: "1.50 ms", 250_000: "250 ms"} {
		if got := duration(us); got != want {
			t.Errorf("duration(%v) = %s", us, got)
		}
	}
}
