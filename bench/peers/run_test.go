package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/bench/peers/data"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
)

// fakeWorker is the argument with which the test's own program is a worker.
const fakeWorker = "fake-worker"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == fakeWorker {
		fake{os.Args[2], carriers()}.serve(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

const fakeRecords = 2000

// A fake is a worker whose name says how it behaves.
type fake struct {
	how   string
	first map[string][]uint32 // records by tag
}

func (f fake) serve(in io.Reader, out io.Writer) {
	answers := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var request struct {
			Op   string
			Args json.RawMessage
		}
		reply := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			reply["error"] = err.Error()
		} else {
			reply = f.answer(request.Op, request.Args)
		}
		if err := answers.Encode(reply); err != nil || request.Op == protocol.OpClose {
			return
		}
	}
}

func (f fake) answer(op string, args json.RawMessage) map[string]any {
	ok := func(x any) map[string]any { return map[string]any{"ok": x} }
	switch {
	case f.how == "dying at "+op:
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(3)
	case f.how == "refusing "+op:
		return map[string]any{"unsupported": "no such thing"}
	case f.how == "failing at "+op:
		return map[string]any{"error": "it broke"}
	}
	var load protocol.Load
	switch op {
	case protocol.OpHello:
		h := protocol.Hello{
			Name: f.how, Version: "1", Durable: "synced", Text: true, Vector: true, Hybrid: f.how != "apart",
			Filter: f.how != "unfiltered", Update: true, Delete: f.how != "undeleting", Graph: true, Effort: []int{5, 7, 9},
		}
		return ok(h)
	case protocol.OpOpen, protocol.OpGraph, protocol.OpClose:
		return ok(timed(1))
	case protocol.OpFinish:
		return ok(protocol.Cost{})
	case protocol.OpMemory:
		return ok(protocol.Memory{Resident: 3, Anonymous: 2, Idle: 1})
	case protocol.OpLoad:
		if err := json.Unmarshal(args, &load); err != nil {
			return map[string]any{"error": err.Error()}
		}
		cost := timed((load.To - load.From) / load.Batch)
		if f.how == "crawling" {
			cost.Wall = 1e6
		}
		return ok(cost)
	case protocol.OpSingle, protocol.OpVisible, protocol.OpUpdate, protocol.OpDelete:
		if err := json.Unmarshal(args, &load); err != nil {
			return map[string]any{"error": err.Error()}
		}
		return ok(timed(load.To - load.From))
	case protocol.OpMixed:
		return ok(protocol.MixedCost{Reads: timed(30), Writes: timed(3)})
	case protocol.OpSearch:
		var s protocol.Search
		if err := json.Unmarshal(args, &s); err != nil {
			return map[string]any{"error": err.Error()}
		}
		return ok(f.search(s))
	}
	return map[string]any{"error": "no operation " + op}
}

// timed gives a cost of n calls of 1, 2, 3 ... milliseconds.
func timed(n int) protocol.Cost {
	c := protocol.Cost{Times: []float64{}}
	for i := range n {
		c.Times = append(c.Times, float64(i+1)/1000)
		c.Wall += c.Times[i]
	}
	c.CPU = c.Wall / 2
	return c
}

// search answers with the first records that carry the tag: the truth of the fake
// set. An effort below 7 misses them.
func (f fake) search(s protocol.Search) protocol.Found {
	found := protocol.Found{IDs: [][]int{}}
	for range s.Queries {
		found.Times = append(found.Times, 0.001)
	}
	if f.how == "slow" {
		for i := range found.Times {
			found.Times[i] = 0.2
		}
	}
	found.Wall, found.CPU = 0.001*float64(len(s.Queries)), 0.0005*float64(len(s.Queries))
	for _, q := range s.Queries {
		tag := q.Tag
		if f.how == "lying" {
			tag = ""
		}
		ids := []int{}
		for _, id := range f.first[tag] {
			ids = append(ids, int(id))
		}
		if s.Effort > 0 && s.Effort < 7 && s.Kind == protocol.KindVector {
			ids = ids[:1]
		}
		found.IDs = append(found.IDs, ids)
	}
	return found
}

// carriers gives the first records of all and with the widest filter's tag.
func carriers() map[string][]uint32 {
	out := map[string][]uint32{}
	c := bench.NewCorpus(1, fakeRecords)
	for id := range 300 {
		for _, tag := range append(c.Record(id).Tags, "") {
			if len(out[tag]) < data.Neighbours {
				out[tag] = append(out[tag], uint32(id))
			}
		}
	}
	return out
}

// fakeSet is a set without files: fakes read none.
func fakeSet() *data.Set {
	s := &data.Set{Count: fakeRecords, Extra: data.Extra, Dimension: 4, Asks: 40, Filters: data.Filters()[:2], Texts: map[string][]protocol.Query{}, Truth: map[string][]data.Truth{}}
	for _, class := range bench.Classes() {
		s.Classes = append(s.Classes, string(class))
		for i := range chunk {
			s.Texts[string(class)] = append(s.Texts[string(class)], protocol.Query{Text: fmt.Sprint(class, i)})
		}
	}
	first := carriers()
	for _, f := range s.Filters {
		for range s.Asks {
			s.Truth[f.Name] = append(s.Truth[f.Name], data.Truth{IDs: first[f.Tag], Worst: 2})
		}
	}
	return s
}

// runFakes runs a leg with fakes and gives the rows by task, filter and product.
func runFakes(t *testing.T, holds string, o options, hows ...string) map[string]result.Row {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.rounds, o.limit, o.mixed = 2, time.Minute, time.Second
	r := &runner{options: o, begun: time.Now(), progress: io.Discard, scratch: t.TempDir()}
	for _, how := range hows {
		r.products = append(r.products, &product{id: how, command: []string{self, fakeWorker, how}})
	}
	r.greet(context.Background())
	l := &leg{runner: r, holds: holds, set: fakeSet(), corpus: bench.NewCorpus(1, fakeRecords), label: "as held"}
	if err := l.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.dir); err == nil {
		t.Error("the leg left its files")
	}
	rows := map[string]result.Row{}
	for _, row := range r.file.Rows {
		key := strings.Join([]string{row.Task, row.Class, row.Filter, row.Product}, "/")
		if _, ok := rows[key]; ok {
			t.Errorf("two rows of %s", key)
		}
		if row.Missing == "" && row.P50 == 0 && row.Seconds == 0 && row.Rate == 0 && row.Bytes == 0 && row.Task != result.TaskDisk {
			t.Errorf("%s: neither a figure nor a reason", key)
		}
		rows[key] = row
	}
	return rows
}

func TestLegOfTexts(t *testing.T) {
	rows := runFakes(t, holdsTexts, options{}, "good", "slow", "lying", "unfiltered", "dying at search", "dying at single", "failing at update", "undeleting", "crawling", "dying at hello")
	missing := map[string]string{
		"text/one rare term/none/lying":               "",
		"text/one rare term/10 %/lying":               "a search for records tagged ten-3 gave record 0, which is not",
		"text/one rare term/none/unfiltered":          "",
		"text/one rare term/10 %/unfiltered":          noFilter,
		"text/one rare term/none/dying at search":     "it said: out of luck",
		"text/one frequent term/none/dying at search": "it said: out of luck",
		"single write///dying at search":              "it said: out of luck",
		"text/one character/10 %/dying at single":     "",
		"single write///dying at single":              "exit status 3",
		"delete///dying at single":                    "exit status 3",
		"update///failing at update":                  "it broke",
		"delete///failing at update":                  "",
		"delete///undeleting":                         "records cannot be deleted",
		"batch ingest///crawling":                     "loading 2,000 records would take",
		"batch ingest///good":                         "",
		"finish///good":                               "nothing to do",
		"open/with start//good":                       "",
		"disk///good":                                 "",
		"read while writing///good":                   "",
		"write while reading///good":                  "",
	}
	for key, want := range missing {
		row, ok := rows[key]
		switch {
		case !ok:
			t.Errorf("no row of %s", key)
		case want == "" && row.Missing != "":
			t.Errorf("%s is missing: %s", key, row.Missing)
		case !strings.Contains(row.Missing, want):
			t.Errorf("%s: missing %q, want %q", key, row.Missing, want)
		case want != "" && row.Samples > 0:
			t.Errorf("%s is missing and has samples", key)
		}
	}
	for key := range rows {
		if strings.HasSuffix(key, "dying at hello") {
			t.Errorf("%s: a row of a product that takes no part", key)
		}
	}
	if got := rows["text/five terms, mixed/none/good"]; got.Samples != 2*chunk || got.P50 != 1000 || got.CPU != 500 || got.Data != "" {
		t.Errorf("good: %+v", got)
	}
	if got := rows["text/five terms, mixed/none/slow"]; got.Samples != slowSamples || got.P50 != 200_000 {
		t.Errorf("slow: %+v", got)
	}
	if got := rows["single write///good"]; got.Samples != 2*singleRound || got.P50 != 20_000 || got.P99 != 40_000 || got.Data != "as held" {
		t.Errorf("single: %+v", got)
	}
	if got := rows["memory///good"]; got.Bytes != 3 || got.Anonymous != 2 || got.Idle != 1 {
		t.Errorf("memory: %+v", got)
	}
	if got := rows["batch ingest///good"]; got.Samples != fakeRecords || got.Rate != fakeRecords/0.002 {
		t.Errorf("batch: %+v", got)
	}
}

func TestLegOfVectors(t *testing.T) {
	rows := runFakes(t, holdsVectors, options{tasks: []string{doVector, doOpen}}, "good", "unfiltered")
	for _, filter := range []string{"none", "10 %"} {
		if got := rows["vector//"+filter+"/good"]; got.Effort != 7 || got.Recall != 1 || got.Samples != 2*chunk {
			t.Errorf("%s: %+v", filter, got)
		}
	}
	if got := rows["vector//10 %/unfiltered"]; got.Missing != noFilter {
		t.Errorf("unfiltered: %+v", got)
	}
	for key := range rows {
		if strings.HasPrefix(key, "single") || strings.HasPrefix(key, "text") || strings.HasPrefix(key, "memory") {
			t.Errorf("%s was not asked for", key)
		}
	}
}

func TestLegOfBoth(t *testing.T) {
	rows := runFakes(t, holdsBoth, options{tasks: []string{doHybrid, doMemory}}, "good", "apart", "refusing search")
	if got := rows["hybrid//10 %/good"]; got.Effort != 7 || got.Missing != "" {
		t.Errorf("good: %+v", got)
	}
	if got := rows["hybrid//none/apart"]; !strings.Contains(got.Missing, "not joined") {
		t.Errorf("apart: %+v", got)
	}
	if got := rows["hybrid//none/refusing search"]; got.Missing != "no such thing" {
		t.Errorf("refusing: %+v", got)
	}
	if got := rows["memory///good"]; got.Bytes != 3 {
		t.Errorf("memory: %+v", got)
	}
	for key := range rows {
		if strings.HasPrefix(key, "open") {
			t.Errorf("%s was not asked for", key)
		}
	}
}

func TestTurnsRotate(t *testing.T) {
	l := &leg{runner: &runner{progress: io.Discard}}
	var who []*contender
	for _, name := range []string{"a", "b", "c"} {
		who = append(who, &contender{product: &product{hello: protocol.Hello{Name: name}}})
	}
	var order []string
	l.turns(context.Background(), who, figure{
		row: func(c *contender) result.Row { return result.Row{Product: c.hello.Name} }, warm: true, rounds: 3,
		sample: func(_ context.Context, c *contender, round int) (protocol.Cost, error) {
			order = append(order, fmt.Sprint(round, c.hello.Name))
			return protocol.Cost{Times: []float64{float64(round)}, CPU: float64(round)}, nil
		},
	})
	if got, want := strings.Join(order, " "), "0a 0b 0c 1b 1c 1a 2c 2a 2b 3a 3b 3c"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	for _, row := range l.file.Rows {
		// The round before those that count is in none of it.
		if row.Samples != 3 || row.P50 != 2e6 || row.CPU != 2e6 {
			t.Errorf("%+v", row)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	tests := []struct {
		of   []float64
		p    float64
		want float64
	}{
		{nil, 0.5, 0}, {[]float64{7}, 0.99, 7}, {[]float64{1, 2}, 0.5, 1}, {[]float64{1, 2, 3}, 0.5, 2},
		{hundred, 0.5, 50}, {hundred, 0.95, 95}, {hundred, 0.99, 99}, {hundred, 1, 100},
	}
	for _, tt := range tests {
		if got := percentile(tt.of, tt.p); got != tt.want {
			t.Errorf("%v of %d samples is %f, want %f", tt.p, len(tt.of), got, tt.want)
		}
	}
}

func TestFewAreFromAllOver(t *testing.T) {
	queries := make([]protocol.Query, chunk)
	for i := range queries {
		queries[i].Text = fmt.Sprint(i)
	}
	seen := map[string]bool{}
	for round := 1; round <= 5; round++ {
		for _, q := range few(queries, round, 4) {
			seen[q.Text] = true
		}
	}
	if len(seen) != slowSamples {
		t.Errorf("%d different queries in all rounds, want %d", len(seen), slowSamples)
	}
}

func TestOptions(t *testing.T) {
	good := options{sizes: []int{1000}, holds: []string{holdsBoth}, rounds: 1, limit: 1, mixed: 1}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(o *options){
		"size":   func(o *options) { o.sizes = []int{10} },
		"task":   func(o *options) { o.tasks = []string{"dance"} },
		"holds":  func(o *options) { o.holds = []string{"water"} },
		"rounds": func(o *options) { o.rounds = 0 },
	} {
		bad := good
		spoil(&bad)
		if bad.check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	r := &runner{}
	if !r.wants(doSingle, 1000) || r.wants(doSingle, large) || !r.wants(doText, large) {
		t.Error("a large run does what shows growth, others do all")
	}
	r.tasks = []string{doSingle}
	if !r.wants(doSingle, large) || r.wants(doText, 1000) {
		t.Error("what is named is done, and no more")
	}
}

func TestRepeatable(t *testing.T) {
	c := runCommand()
	if err := c.ParseFlags([]string{"--work", "somewhere", "--sizes", "1000,2000", "--products=loci,x", "--python", "p", "--limit", "3m"}); err != nil {
		t.Fatal(err)
	}
	if got, want := repeatable(c.Flags()), "go run . run --limit 3m0s --products loci,x --sizes 1000,2000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	if err := mayMake(filepath.Join(dir, "not there")); err != nil {
		t.Error(err)
	}
	if err := mayMake(dir); err != nil {
		t.Errorf("empty: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "letter"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mayMake(dir) == nil {
		t.Error("a folder with somebody's files would be emptied")
	}
	if _, err := prepare(context.Background(), dir, io.Discard); err == nil {
		t.Error("a folder with somebody's files was emptied")
	}
	if err := os.WriteFile(filepath.Join(dir, stampName), []byte("incomplete\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mayMake(dir); err != nil {
		t.Errorf("its own: %v", err)
	}
}

func TestPeers(t *testing.T) {
	names, err := peerNames()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "hnswlib_index") || slices.Contains(names, "words") || slices.Contains(names, "__init__") {
		t.Errorf("peers: %v", names)
	}
	dir := t.TempDir()
	script, err := unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "__init__") {
		if _, err := os.Stat(filepath.Join(filepath.Dir(script), "adapters", name+".py")); err != nil {
			t.Error(err)
		}
	}
}

func TestReason(t *testing.T) {
	long := reason(errors.New(strings.Repeat("word\n\t", 200) + "end"))
	if strings.ContainsAny(long, "\n\t") || len(long) > 310 || !strings.HasSuffix(long, "end") {
		t.Errorf("%q", long)
	}
}
