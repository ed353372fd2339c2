package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// naiveFact is a fact as a model of the memory keeps it. Its metadata is told by
// numbers that stand for values, so that the model need not compare JSON.
type naiveFact struct {
	id       loci.PointID
	content  string
	vector   []float32
	expires  int64 // 0: never
	from, to int64 // 0: open
	values   map[string]int
	tag      string
	thread   string
}

// spellings are the values of the model in several forms each.
func spellings() [][]string {
	return [][]string{
		{`1`, `1.0`, `10e-1`}, {`1.0000000000000000001`, `10000000000000000001e-19`}, {`"1"`, `"\u0031"`}, {`null`}, {`true`}, {`false`},
		{`{"a":1,"b":[1,2]}`, `{"b":[1.0,2],"a":1e0}`}, {`{"a":1,"b":[2,1]}`}, {`{"a":1}`, `{ "a" : 1.00 }`}, {`[]`, `[ ]`}, {`{}`, `{ }`},
		{`[{"x":null}]`}, {`[{}]`}, {`9007199254740993`, `9007199254740993.0`}, {`9007199254740992`}, {`0`, `-0`, `0.0`}, {`""`},
	}
}

// metadata spells values one way or another.
func (f *naiveFact) metadata(r *rand.Rand) loci.Metadata {
	all := spellings()
	out := []byte{'{'}
	for key, value := range f.values {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:%s", key, all[value][r.IntN(len(all[value]))])
	}
	return append(out, '}')
}

// current says whether a query at a time, about another, may give the fact.
func (f *naiveFact) current(now, at int64) bool {
	return (f.expires == 0 || f.expires > now) && (f.from == 0 || f.from <= at) && (f.to == 0 || at < f.to)
}

// randomMemory is a memory and its model.
type randomMemory struct {
	*testMemory
	r     *rand.Rand
	facts map[loci.PointID]*naiveFact
	now   int64
	dim   int
}

func (m *randomMemory) id() loci.PointID {
	id := loci.PointID(m.r.IntN(2500))
	if m.r.IntN(8) == 0 {
		id = math.MaxUint64 - id
	}
	return id
}

func (m *randomMemory) vector() []float32 {
	v := make([]float32, m.dim)
	switch m.r.IntN(4) {
	case 0: // ties
		v[m.r.IntN(m.dim)] = float32(1 + m.r.IntN(3))
	case 1: // close together
		for i := range v {
			v[i] = 1 + float32(m.r.NormFloat64())*1e-4
		}
	default:
		scale := math.Pow(10, float64(m.r.IntN(41)-20))
		for i := range v {
			v[i] = float32(m.r.NormFloat64() * scale)
		}
	}
	return v
}

func (m *randomMemory) fact() *naiveFact {
	f := &naiveFact{id: m.id(), vector: m.vector(), values: map[string]int{}}
	f.content = fmt.Sprint("text ", m.r.IntN(40))
	for _, key := range []string{"k", "o", "k.o"} {
		if m.r.IntN(2) == 0 {
			f.values[key] = m.r.IntN(len(spellings()))
		}
	}
	if m.r.IntN(3) == 0 {
		f.expires = m.now + (1+int64(m.r.IntN(30)))*second
	}
	if m.r.IntN(4) == 0 {
		f.from = m.now + int64(m.r.IntN(60)-30)*second
	}
	if m.r.IntN(4) == 0 {
		f.to = max(m.now, f.from) + (1+int64(m.r.IntN(30)))*second
	}
	if m.r.IntN(3) == 0 {
		f.tag = "nova"
	}
	if m.r.IntN(5) == 0 {
		f.thread = "talk"
	}
	return f
}

// input is a model's fact as it is stored.
func (m *randomMemory) input(f *naiveFact) FactInput {
	in := fact(f.id, f.content, f.vector)
	in.Metadata = f.metadata(m.r)
	if f.expires != 0 {
		in.TTLSeconds = new(uint64((f.expires - m.now) / second))
	}
	if f.from != 0 {
		in.ValidFromUS = &f.from
	}
	if f.to != 0 {
		in.ValidToUS = &f.to
	}
	if f.tag != "" {
		in.Tags = []string{f.tag}
	}
	if f.thread != "" {
		in.Thread = &f.thread
	}
	return in
}

// step changes memory and model.
func (m *randomMemory) step() {
	switch m.r.IntN(10) {
	case 0, 1, 2, 3, 4, 5:
		batch := make([]FactInput, 1+m.r.IntN(60))
		for i := range batch {
			f := m.fact()
			batch[i], m.facts[f.id] = m.input(f), f
		}
		if err := m.testMemory.facts.StoreBatch(m.t.Context(), batch); err != nil {
			m.t.Fatal(err)
		}
	case 6:
		id := m.id()
		f := m.facts[id]
		live := f != nil && (f.expires == 0 || f.expires > m.now)
		if r := must[*loci.Receipt[bool]](m.t)(m.testMemory.facts.Delete(m.t.Context(), id)); r.Value != live {
			m.t.Errorf("deleted %d: %v, want %v", id, r.Value, live)
		}
		delete(m.facts, id)
	case 7:
		for _, f := range m.facts {
			if f.expires != 0 && f.expires <= m.now {
				continue
			}
			value := m.r.IntN(len(spellings()))
			spelled := spellings()[value][0]
			f.values = map[string]int{"k": value}
			if spelled == "null" { // takes the key away
				f.values = nil
			}
			f.content = "text changed"
			m.update(f.id, fmt.Sprintf(`{"o":null,"k.o":null,"k":%s,"content":"text changed"}`, spelled))
			break
		}
	case 8:
		m.now += int64(m.r.IntN(10)) * second
		m.clock.Set(m.now)
	case 9:
		switch m.r.IntN(4) {
		case 0:
			m.reopen() // what was in the tail is in a segment then
		case 1:
			m.sweep()
		}
	}
}

// ask is a query and what the model answers.
func (m *randomMemory) ask() (QueryRequest, []Hit) {
	req := QueryRequest{Embedding: m.vector(), K: new(1 + m.r.IntN(30))}
	if m.r.IntN(3) == 0 {
		req.Offset = m.r.IntN(50)
	}
	want := map[string]int{}
	for _, key := range []string{"k", "o"} {
		if m.r.IntN(3) == 0 {
			want[key] = m.r.IntN(len(spellings()))
		}
	}
	if len(want) > 0 {
		req.Filter = (&naiveFact{values: want}).metadata(m.r)
	}
	exists := m.r.IntN(5) == 0
	if exists {
		req.Where = []loci.Condition{{Key: "k.o", Op: loci.OpExists}}
	}
	tagged, threaded := m.r.IntN(5) == 0, m.r.IntN(6) == 0
	if tagged {
		req.Tags = []string{"nova"}
	}
	if threaded {
		req.Thread = new("talk")
	}
	at := m.now
	if m.r.IntN(3) == 0 {
		at += int64(m.r.IntN(80)-40) * second
		req.AsOfValidUS = &at
	}
	hits := []Hit{}
	for _, f := range m.facts {
		_, has := f.values["k.o"]
		if !f.current(m.now, at) || exists && !has || tagged && f.tag == "" || threaded && f.thread == "" {
			continue
		}
		meets := true
		for key, value := range want {
			got, ok := f.values[key]
			meets = meets && ok && got == value
		}
		if meets {
			hits = append(hits, Hit{f.id, naiveCosine(req.Embedding, f.vector), f.content})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	hits = hits[min(req.Offset, len(hits)):]
	return req, hits[:min(*req.K, len(hits))]
}

func naiveCosine(a, b []float32) float64 {
	var sum, aa, bb float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return min(max(sum/(math.Sqrt(aa)*math.Sqrt(bb)), -1), 1)
}

// sameHits compares hits with a model's. Where the last bits of two scores differ
// from the model's, hits that the model has closer than that may change places.
func sameHits(got, want []Hit) bool {
	const bits = 1e-14
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] && math.Abs(got[i].Score-want[i].Score) > bits {
			return false
		}
		if got[i].ID == want[i].ID && got[i].Content != want[i].Content ||
			i > 0 && (got[i].Score > got[i-1].Score || got[i].Score == got[i-1].Score && got[i].ID <= got[i-1].ID) {
			return false
		}
	}
	return true
}

func TestQueryModel(t *testing.T) { // Q5
	rounds, dims := 100, []int{3, 16}
	if testing.Short() {
		rounds, dims = 12, []int{8}
	}
	for _, dim := range dims {
		t.Run(fmt.Sprint("dimension ", dim), func(t *testing.T) {
			m := &randomMemory{testMemory: openMemory(t, dim), r: rand.New(rand.NewPCG(1, uint64(dim))), facts: map[loci.PointID]*naiveFact{}, now: T, dim: dim}
			for round := range rounds {
				m.step()
				for range 3 {
					req, want := m.ask()
					whole := m.AgentMemory.link
					for name, l := range map[string]link.Store{"with the index": whole, "without": noIndex{whole}, "with one that fails": badIndex{whole, new(int)}} {
						m.AgentMemory.link = l
						got := must[*Hits](t)(m.testMemory.facts.QueryHits(t.Context(), req)).Hits
						m.AgentMemory.link = whole
						if !sameHits(got, want) {
							t.Fatalf("round %d, %s, %s at %d:\n got %+v\nwant %+v", round, name, asJSON(t, req), m.now, got, want)
						}
					}
					req.Approximate = true
					got := must[*Hits](t)(m.testMemory.facts.QueryHits(t.Context(), req)).Hits
					if len(got) != len(want) {
						t.Fatalf("round %d: %d hits by approximation, want %d", round, len(got), len(want))
					}
				}
				live := int64(0)
				for _, f := range m.facts {
					if f.expires == 0 || f.expires > m.now {
						live++
					}
				}
				if n := m.count(); n != live {
					t.Fatalf("round %d: count %d, want %d", round, n, live)
				}
			}
			m.deepCheck()
		})
	}
}

// TestQueryOfMany compares more facts than the index goes through one by one. // Q5
func TestQueryOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const n, dim = 30_000, 16
	m := openMemory(t, dim)
	r := rand.New(rand.NewPCG(2, 3))
	vectors := make(map[loci.PointID][]float32, n)
	write := func(ids func() loci.PointID, n int) {
		var batch []FactInput
		for range n {
			v := make([]float32, dim)
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			id := ids()
			vectors[id] = v
			batch = append(batch, fact(id, "", v))
			if len(batch) == MaxBatch {
				m.storeBatch(batch)
				batch = batch[:0]
			}
		}
		m.storeBatch(batch)
	}
	next := loci.PointID(0)
	write(func() loci.PointID { next++; return next }, n)
	m.reopen()
	write(func() loci.PointID { return loci.PointID(1 + r.IntN(n)) }, 500)
	for id := range loci.PointID(500) {
		m.store(id*7, "ended", vectors[1], withValidity(nil, new(T)))
		delete(vectors, id*7)
	}
	for range 20 {
		q := make([]float32, dim)
		for i := range q {
			q[i] = float32(r.NormFloat64())
		}
		want := make([]Hit, 0, n)
		for id, v := range vectors {
			want = append(want, Hit{ID: id, Score: naiveCosine(q, v)})
		}
		slices.SortFunc(want, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
		for _, approximate := range []bool{false, true} {
			got := must[*Hits](t)(m.facts.QueryHits(t.Context(), QueryRequest{Embedding: q, K: new(100), Approximate: approximate})).Hits
			if !approximate && !sameHits(got, want[:100]) || len(got) != 100 {
				t.Fatalf("approximate %v: got %+v, want %+v", approximate, got, want[:100])
			}
			tolerance := 1e-14
			if approximate {
				tolerance = 1e-4
			}
			found := 0
			for _, h := range got {
				if math.Abs(h.Score-naiveCosine(q, vectors[h.ID])) > tolerance {
					t.Errorf("approximate %v: score %v of %d", approximate, h.Score, h.ID)
				}
				if h.Score >= want[99].Score-tolerance {
					found++
				}
			}
			if found < 97 {
				t.Errorf("approximate %v: %d of the 100 nearest", approximate, found)
			}
		}
	}
}

// storeBatch stores facts.
func (m *testMemory) storeBatch(batch []FactInput) {
	m.t.Helper()
	if err := m.facts.StoreBatch(m.t.Context(), batch); err != nil {
		m.t.Fatal(err)
	}
}

// noIndex is a store whose index is not usable.
type noIndex struct{ link.Store }

func (l noIndex) Pair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error {
	return l.Store.Pair(ctx, func(tx *store.ReadTx, _ index.View) error { return fn(tx, nil) })
}

// badIndex is a store whose index fails, after some answers of a call at times.
type badIndex struct {
	link.Store
	failed *int
}

func (l badIndex) IndexFailed() { *l.failed++ }

func (l badIndex) Pair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error {
	return l.Store.Pair(ctx, func(tx *store.ReadTx, view index.View) error { return fn(tx, badView{view}) })
}

type badView struct{ index.View }

func (badView) Nearest(index.VectorQuery, index.Filter) (index.VectorResult, error) {
	return index.VectorResult{}, errors.New("a damaged file")
}

func (badView) Count(index.Filter) (int64, error) { return 0, errors.New("a damaged file") }

func TestIndexThatFails(t *testing.T) {
	m := openMemory(t, 4)
	m.storeMany(20, withMetadata(`{"k":1}`))
	failed := 0
	m.AgentMemory.link = badIndex{m.link, &failed}
	if n := m.count(); n != 20 || failed != 1 {
		t.Errorf("count %d, %d failures told of", n, failed)
	}
	for _, offset := range []int{0, 15, 10_001} {
		hits := must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 5, loci.Metadata(`{"k":1}`), offset))
		if want := min(5, max(0, 20-offset)); len(hits) != want {
			t.Errorf("offset %d: %d hits", offset, len(hits))
		}
	}
	if failed != 4 {
		t.Errorf("%d failures told of", failed)
	}
}

func TestIndexOutOfUse(t *testing.T) { // K4
	m := openMemory(t, 4)
	m.storeMany(20)
	m.link.IndexFailed()
	if m.count() != 20 || len(m.query(x(), 10)) != 10 {
		t.Errorf("count %d", m.count())
	}
	// It is rebuilt; whoever reads meanwhile sees the same.
	for range 50 {
		wantIDs(t, "query", m.query(x(), 2), 0, 1)
	}
}
