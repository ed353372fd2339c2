package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
)

// TenantsOptions tune RunTenants. The zero value is the usual pattern.
type TenantsOptions struct {
	Tenants []int  // how many there are in the stores to compare, default 100, 1000, 10000
	Each    int    // records of a tenant, default 100
	Seed    uint64 // default 1
	// Dimension is that of the records' made-up vectors, default 32: many stores are
	// to fit beside each other, and what a tenant adds does not depend on it.
	Dimension int
	Calls     int // of each kind, each to another tenant as far as there are enough, default 300
	// Dir is where the stores are made, which are removed afterwards; empty: the
	// system's folder for temporary files.
	Dir string
	// Fresh is the command line of a process that calls TenantsChild with what
	// RunTenants appends, and writes the result to its standard output as JSON.
	// Without it opening is measured in this process.
	Fresh []string

	Out      io.Writer // takes a line for each thing that is done; nil means silence
	Progress func(done, total int)
}

// tenantSpace is the id of the space of the made-up vectors.
const tenantSpace = "made-up"

// tenancy is how the tenants of a store are told apart.
type tenancy struct {
	tenants, each int
	// together has all records in one namespace, where a tenant is a tag: a store of
	// the same size without namespaces to pay for.
	together bool
}

// namespace is where the records of a tenant lie.
func (t tenancy) namespace(tenant int) string {
	if t.together {
		return loci.DefaultNamespace
	}
	return fmt.Sprintf("tenant-%05d", tenant)
}

// filter is what a tenant may see.
func (t tenancy) filter(tenant int) loci.ReadFilter {
	f := loci.ReadFilter{Namespace: new(t.namespace(tenant))}
	if t.together {
		f.Tags = []string{fmt.Sprintf("tenant-%05d", tenant)}
	}
	return f
}

// input is record i of all, those of a tenant one after the other.
func (t tenancy) input(c *Corpus, i int) loci.MemoryInput {
	tenant := i / t.each % t.tenants
	in := c.Record(i)
	in.Namespace = new(t.namespace(tenant))
	if t.together {
		in.Tags = append(in.Tags, t.filter(tenant).Tags...)
	}
	return in
}

// tenant is the one that call n is about: far from that of call n-1.
func (t tenancy) tenant(n int) int { return n * 7919 % t.tenants }

type tenantsRun struct {
	TenantsOptions
	ctx    context.Context
	corpus *Corpus
	report *TenantsReport
}

// RunTenants measures what it costs that a store has many tenants: stores with one
// namespace for each of them, few and many, beside stores of as many records in one
// namespace.
func RunTenants(ctx context.Context, o TenantsOptions) (*TenantsReport, error) {
	o.defaults()
	for _, n := range append([]int{o.Each, o.Dimension, o.Calls}, o.Tenants...) {
		if n < 1 {
			return nil, fmt.Errorf("bench: %d is too few: numbers of tenants, records, calls and dimensions are at least 1", n)
		}
	}
	r := &tenantsRun{TenantsOptions: o, ctx: ctx, corpus: NewCorpus(o.Seed, slices.Max(o.Tenants)*o.Each),
		report: &TenantsReport{Machine: thisMachine(), Seed: o.Seed, Each: o.Each, Dimension: o.Dimension}}
	for _, n := range o.Tenants {
		for _, together := range []bool{false, true} {
			t := tenancy{tenants: n, each: o.Each, together: together}
			s, err := r.store(t)
			if err != nil {
				return nil, fmt.Errorf("bench: %d tenants: %w", n, err)
			}
			r.report.Stores = append(r.report.Stores, *s)
		}
	}
	return r.report, nil
}

func (o *TenantsOptions) defaults() {
	set := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	set(&o.Each, 100)
	set(&o.Dimension, 32)
	set(&o.Calls, 300)
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Tenants) == 0 {
		o.Tenants = []int{100, 1000, 10_000}
	}
}

func (r *tenantsRun) say(format string, args ...any) {
	if r.Out != nil {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// store makes a store and measures it.
func (r *tenantsRun) store(t tenancy) (_ *TenantStore, err error) {
	dir, err := os.MkdirTemp(r.Dir, "loci-bench-tenants-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &TenantStore{Tenants: t.tenants, Together: t.together, Records: t.tenants * t.each}
	where := "a namespace each"
	if t.together {
		where = "one namespace"
	}
	r.say("loading %d tenants of %d records, %s", t.tenants, t.each, where)
	if err := r.load(dir, t, s); err != nil {
		return nil, err
	}
	if s.DiskBytes, err = folderSize(dir); err != nil {
		return nil, err
	}
	r.say("opening")
	for range openRepeats {
		o, err := r.fresh(dir, t)
		if err != nil {
			return nil, err
		}
		s.opened = append(s.opened, o)
	}
	s.settleOpen()
	r.say("calling")
	db, err := openTenants(r.ctx, dir, r.Dimension)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return s, r.calls(db, t, s)
}

// openTenants opens a store with its embedder.
func openTenants(ctx context.Context, dir string, dimension int) (_ *loci.DB, err error) {
	db, err := loci.Open(ctx, dir, &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if _, err := db.Embeddings().RegisterSpace(ctx, loci.EmbeddingSpace{ID: tenantSpace, Model: tenantSpace, Dimension: dimension}); err != nil {
		return nil, err
	}
	return db, db.Embeddings().RegisterEmbedder(ctx, tenantSpace, hashed(dimension), &loci.EmbedderOptions{MaxBatch: new(1000)})
}

// load fills a store and gives its records their vectors.
func (r *tenantsRun) load(dir string, t tenancy, s *TenantStore) (err error) {
	db, err := openTenants(r.ctx, dir, r.Dimension)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var m meter
	done := 0
	for batch := range chunks(r.inputs(t, 0, s.Records), batchSize) {
		if err := m.measure(func() error {
			_, err := db.Memories().UpsertMany(r.ctx, batch)
			return err
		}); err != nil {
			return err
		}
		if done += len(batch); r.Progress != nil {
			r.Progress(done, s.Records)
		}
	}
	s.Load = m.throughput(s.Records)
	var sync meter
	var report *loci.Receipt[loci.EmbeddingReport]
	if err := sync.measure(func() (err error) {
		report, err = db.Embeddings().Sync(r.ctx, tenantSpace, loci.EmbeddingSyncOptions{Batch: new(1000)})
		return err
	}); err != nil {
		return err
	}
	if v := report.Value; !v.Ready || v.Embedded != int64(s.Records) {
		return fmt.Errorf("of %d records not all have vectors: %+v", s.Records, v)
	}
	s.Vectors = sync.throughput(s.Records)
	return nil
}

// inputs are records from number from up to but not including to.
func (r *tenantsRun) inputs(t tenancy, from, to int) iter.Seq[loci.MemoryInput] {
	return func(yield func(loci.MemoryInput) bool) {
		for i := from; i < to; i++ {
			if !yield(t.input(r.corpus, i)) {
				return
			}
		}
	}
}

// chunks gives what seq does in slices of size, which hold only until the next one.
func chunks[T any](seq iter.Seq[T], size int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		chunk := make([]T, 0, size)
		for v := range seq {
			if chunk = append(chunk, v); len(chunk) == size {
				if !yield(chunk) {
					return
				}
				chunk = chunk[:0]
			}
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// question asks for record i by the beginning of its text.
func (r *tenantsRun) question(t tenancy, i int, text bool) loci.SearchRequest {
	query := r.corpus.Record(i).Judgment
	if runes := []rune(query); len(runes) > 40 {
		query = string(runes[:40])
		if end := strings.LastIndexByte(query, ' '); end > 0 {
			query = query[:end] // what is left of a word finds nothing
		}
	}
	return loci.SearchRequest{Query: query, Filter: t.filter(i / t.each), Limit: new(searchLimit), NoVector: text}
}

// calls measures what one tenant asks for.
func (r *tenantsRun) calls(db *loci.DB, t tenancy, s *TenantStore) error {
	next := s.Records
	switched := map[bool]func(namespace string) error{}
	for _, on := range []bool{false, true} {
		switched[on] = func(namespace string) error {
			_, err := db.Embeddings().SetVectorization(r.ctx, namespace, loci.TierNotes, on)
			return err
		}
	}
	for _, c := range []struct {
		name string
		call func(n, tenant int) error
	}{
		{"search by text", func(n, tenant int) error { return r.search(db, t, tenant*t.each+n%t.each, true) }},
		{"hybrid search", func(n, tenant int) error { return r.search(db, t, tenant*t.each+n%t.each, false) }},
		{"list", func(n, tenant int) error {
			page, err := db.Memories().List(r.ctx, loci.PageRequest{Filter: t.filter(tenant), Limit: new(20)})
			if err == nil && len(page.Items) != min(20, t.each) {
				err = fmt.Errorf("tenant %d lists %d records", tenant, len(page.Items))
			}
			return err
		}},
		{"status of vectors", func(n, tenant int) error {
			_, err := db.Embeddings().Status(r.ctx, t.namespace(tenant), tenantSpace)
			return err
		}},
		{"setting", func(n, tenant int) error { return switched[n%2 == 0](t.namespace(tenant)) }},
		{"health", func(int, int) error {
			_, err := db.Health(r.ctx)
			return err
		}},
		{"write", func(n, tenant int) error {
			in := t.input(r.corpus, tenant*t.each)
			in.Judgment = r.corpus.Record(next).Judgment
			next++
			_, err := db.Memories().Upsert(r.ctx, in)
			return err
		}},
		{"search after writes", func(n, tenant int) error { return r.search(db, t, tenant*t.each+n%t.each, true) }},
	} {
		call := TenantCall{What: c.name}
		took := make([]time.Duration, 0, r.Calls)
		var m meter
		for n := range r.Calls {
			tenant := t.tenant(n)
			before := m.wall
			if err := m.measure(func() error { return c.call(n, tenant) }); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			took = append(took, m.wall-before)
		}
		call.Latency, call.CPUMicros = newLatency(took), microseconds(m.cpu)/float64(r.Calls)
		call.AllocBytes = float64(m.allocated) / float64(r.Calls)
		s.Calls = append(s.Calls, call)
	}
	return nil
}

// search asks for a record and expects it among the answers, and no other tenant's.
func (r *tenantsRun) search(db *loci.DB, t tenancy, i int, text bool) error {
	result, err := db.Search(r.ctx, r.question(t, i, text))
	if err != nil {
		return err
	}
	if d := &result.Diagnostics; len(d.Degraded) > 0 || d.VectorUsed == text {
		return fmt.Errorf("a search had to do with less: %+v", *d)
	}
	if len(result.Hits) == 0 {
		return fmt.Errorf("record %d was not found", i)
	}
	for _, h := range result.Hits {
		if m, ok := h.Record.(*loci.Memory); !ok || m.Namespace != t.namespace(i/t.each) {
			return fmt.Errorf("record %d was asked for, and another tenant's answers: %v", i, h.Record)
		}
	}
	return nil
}

// fresh measures one opening in a process of its own.
func (r *tenantsRun) fresh(dir string, t tenancy) (o TenantOpen, err error) {
	ask, err := json.Marshal(tenantAsk{Dir: dir, Dimension: r.Dimension, Request: r.question(t, t.tenant(1)*t.each, false)})
	if err != nil {
		return o, err
	}
	if len(r.Fresh) == 0 {
		return TenantsChild(r.ctx, ask)
	}
	cmd := exec.CommandContext(r.ctx, r.Fresh[0], append(slices.Clone(r.Fresh[1:]), string(ask))...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return o, fmt.Errorf("a fresh process: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return o, json.Unmarshal(out, &o)
}

// tenantAsk is what a fresh process is told.
type tenantAsk struct {
	Dir       string             `json:"dir"`
	Dimension int                `json:"dimension"`
	Request   loci.SearchRequest `json:"request"`
}

// TenantsChild is the fresh process: it opens a store, asks for one tenant's record
// and says what that took and holds.
func TenantsChild(ctx context.Context, ask []byte) (o TenantOpen, err error) {
	var a tenantAsk
	if err := json.Unmarshal(ask, &a); err != nil {
		return o, err
	}
	begin := time.Now()
	db, err := openTenants(ctx, a.Dir, a.Dimension)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	o.OpenMS = microseconds(time.Since(begin)) / 1000
	result, err := db.Search(ctx, a.Request)
	if err != nil {
		return o, err
	}
	o.FirstAnswerMS = microseconds(time.Since(begin)) / 1000
	if len(result.Hits) == 0 || len(result.Diagnostics.Degraded) > 0 {
		return o, fmt.Errorf("the first search gave %d hits: %+v", len(result.Hits), result.Diagnostics)
	}
	o.Memory = residentMemory()
	o.Handles, err = openHandles()
	return o, err
}

// openHandles counts what this process has open, where the system tells; elsewhere
// it gives 0.
func openHandles() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return len(entries), err
}

// folderSize is how many bytes the files of a folder hold.
func folderSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// hashed is an embedder of made-up vectors of a dimension, which texts decide.
type hashed int

// Embed implements embed.Embedder.
func (h hashed) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		of := fnv.New64a()
		of.Write([]byte(text))
		r := newRandom(of.Sum64(), 1<<45)
		out[i] = make([]float32, h)
		for j := range out[i] {
			out[i][j] = float32(r.normal())
		}
	}
	return out, nil
}
