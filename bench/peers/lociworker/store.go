package lociworker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/embed"
)

// hello says what Loci is and how it is used.
func hello() protocol.Hello {
	return protocol.Hello{
		Name: "loci", Version: version(),
		Settings: "embedded, defaults throughout. Records with vectors of the caller's are the facts of an agent memory, under the caller's ids: " +
			"text, tags and vector are written in one synced transaction and can be found when it returns. " +
			"Searches are DB.Search (any of the words, those with all of them first, by BM25; hybrid: fused with the vectors by score, " +
			"the query's vector handed over by an embedder that only passes it on), those by vector alone QueryHits, approximate or, where that finds too few, exact; " +
			"the index holds a vector at one byte a number, and the best candidates are scored by the vectors in full. " +
			"Without vectors records are memories. Embedding in the background is off, as every vector comes with its record. " +
			"Replaced facts keep their versions, ten at most. After loading, the work of the index in the background is waited for and counted.",
		Durable: "synced",
		Text:    true, Vector: true, Hybrid: true, Filter: true, Update: true, Delete: true, Graph: true, OwnAnalysis: true,
		Effort: []int{effortDefault, effortExact}, EffortIs: "1: approximate, 2: every vector is compared (exact)",
		Missing: []string{"an analysis that only parts at blanks: texts whose words come parted go through its own as well"},
	}
}

// version is the commit that was built, where the build knows it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return "as in this tree"
}

// What a caller may choose of a search by vectors.
const (
	effortDefault = 1
	effortExact   = 2
)

const (
	// space is the id of the space of the given vectors.
	space = "given"
	// storeDir and handleDir lie in the folder of a run.
	storeDir  = "store"
	handleDir = "handles"
)

// store is Loci as a run uses it.
type store struct {
	db *loci.DB
	// facts are the records of a run with vectors; without, records are memories and
	// handles tells them apart.
	facts   *agent.SemanticMemory
	handles *handles
	texts   bool
	words   bool // texts come with their words parted
}

// open opens the store of a run as a program does that uses it, its embedder
// included.
func open(ctx context.Context, a protocol.Open) (_ *store, err error) {
	s := &store{texts: a.Texts}
	switch a.Analysis {
	case "own":
	case "words":
		s.words = true
	default:
		return nil, fmt.Errorf("an analysis %q", a.Analysis)
	}
	if !a.Texts && !a.Vectors {
		return nil, errors.New("neither texts nor vectors are to be indexed")
	}
	if s.db, err = loci.Open(ctx, filepath.Join(a.Dir, storeDir), &loci.Options{NoBackgroundEmbedding: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if !a.Vectors {
		dir := filepath.Join(a.Dir, handleDir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		s.handles, err = openHandles(dir)
		return s, err
	}
	spaces := s.db.Embeddings()
	if _, err := spaces.RegisterSpace(ctx, loci.EmbeddingSpace{ID: space, Model: space, Dimension: a.Dimension}); err != nil {
		return nil, err
	}
	if err := spaces.RegisterEmbedder(ctx, space, passer{a.Dimension}, nil); err != nil {
		return nil, err
	}
	memory, err := agent.Open(ctx, s.db, agent.Config{Dimension: a.Dimension, Space: space})
	if err != nil {
		return nil, err
	}
	s.facts = memory.Semantic()
	return s, nil
}

func (s *store) close() error { return errors.Join(s.db.Close(), s.handles.close()) }

// text is what is searched and stored of a text.
func (s *store) text(text, words string) string {
	switch {
	case !s.texts:
		return ""
	case s.words:
		return words
	}
	return text
}

// insert writes new records, all in one transaction that is synced when it returns.
// It gives the ids by which the store knows them.
func (s *store) insert(ctx context.Context, b batch) ([]int64, error) {
	if s.facts == nil {
		return s.insertMemories(ctx, b.records)
	}
	if b.vectors == nil {
		return nil, errNoVectors
	}
	facts := make([]agent.FactInput, len(b.records))
	own := make([]int64, len(b.records))
	for i, r := range b.records {
		facts[i], own[i] = s.fact(&b, i), int64(r.ID)
	}
	if len(facts) == 1 {
		_, err := s.facts.Put(ctx, facts[0])
		return own, err
	}
	_, err := s.facts.PutBatch(ctx, agent.FactBatch{Facts: facts})
	return own, err
}

// errNoVectors keeps the embedder, which only passes vectors on, from being asked for
// those of records.
var errNoVectors = errors.New("the records come without their vectors")

// fact is a record of a batch as a fact. The store takes ids from 0 on.
func (s *store) fact(b *batch, i int) agent.FactInput {
	r := &b.records[i]
	return agent.FactInput{Content: s.text(r.Text, r.Words),
		PointInput: agent.PointInput{ID: loci.PointID(r.ID), Tags: r.Tags, Embedding: b.vectors[i]}}
}

func (s *store) insertMemories(ctx context.Context, records []protocol.Record) ([]int64, error) {
	memories := make([]loci.MemoryInput, len(records))
	for i, r := range records {
		memories[i] = loci.MemoryInput{Judgment: s.text(r.Text, r.Words), RecordInput: loci.RecordInput{Tags: r.Tags}}
	}
	if len(memories) == 1 {
		written, err := s.db.Memories().Upsert(ctx, memories[0])
		if err != nil {
			return nil, err
		}
		return []int64{int64(written.Value.ID)}, nil
	}
	written, err := s.db.Memories().UpsertMany(ctx, memories)
	if err != nil {
		return nil, err
	}
	own := make([]int64, len(written.Value))
	for i := range written.Value {
		own[i] = int64(written.Value[i].ID)
	}
	return own, nil
}

// name keeps which ids of the store records have, where they are not their own.
func (s *store) name(records []protocol.Record, own []int64) error {
	if s.facts != nil {
		return nil
	}
	return s.handles.put(records, own)
}

// own is the id by which the store knows a record.
func (s *store) own(record int) (int64, error) {
	if s.facts != nil {
		return int64(record), nil
	}
	return s.handles.memory(record)
}

// records are those that ids of the store stand for.
func (s *store) records(own []int64) ([]int, error) {
	out := make([]int, len(own))
	for i, id := range own {
		if s.facts == nil {
			var err error
			if id, err = s.handles.record(id); err != nil {
				return nil, err
			}
		}
		out[i] = int(id)
	}
	return out, nil
}

// update writes a record again.
func (s *store) update(ctx context.Context, own int64, b batch) error {
	if s.facts != nil {
		if b.vectors == nil {
			return errNoVectors
		}
		_, err := s.facts.Put(ctx, s.fact(&b, 0))
		return err
	}
	r := &b.records[0]
	_, err := s.db.Memories().Upsert(ctx, loci.MemoryInput{
		Judgment: s.text(r.Text, r.Words), RecordInput: loci.RecordInput{ID: loci.ID(own), Tags: r.Tags},
	})
	return err
}

// delete deletes a record, which must be there.
func (s *store) delete(ctx context.Context, own int64) error {
	deleted := s.deleteMemory
	if s.facts != nil {
		deleted = s.deleteFact
	}
	receipt, err := deleted(ctx, own)
	if err == nil && !receipt.Value {
		err = fmt.Errorf("there was no %d to delete", own)
	}
	return err
}

func (s *store) deleteFact(ctx context.Context, own int64) (*loci.Receipt[bool], error) {
	return s.facts.Delete(ctx, loci.PointID(own))
}

func (s *store) deleteMemory(ctx context.Context, own int64) (*loci.Receipt[bool], error) {
	return s.db.Memories().Delete(ctx, loci.ID(own), loci.ReadFilter{})
}

// question is a query that is ready to be asked.
type question struct {
	kind   string
	text   string
	vector []float32
	k      int
	tag    string
	exact  bool
}

// check says whether the store can be asked a question, so that nothing is found out
// within the clock.
func (s *store) check(q *question) error {
	switch q.kind {
	case protocol.KindText, protocol.KindVector, protocol.KindHybrid:
	default:
		return fmt.Errorf("no kind of search %q", q.kind)
	}
	if q.kind != protocol.KindVector && !s.texts {
		return unsupported("this store was opened without texts")
	}
	if q.kind == protocol.KindText {
		return nil
	}
	if s.facts == nil {
		return unsupported("this store was opened without vectors")
	}
	if q.vector == nil {
		return errors.New("the query has no vector")
	}
	return nil
}

// ask asks a question and gives the ids of the store, best first.
func (s *store) ask(ctx context.Context, q question) ([]int64, error) {
	if q.kind == protocol.KindVector {
		return s.askVector(ctx, q)
	}
	req := loci.SearchRequest{Query: q.text, Limit: &q.k, Kinds: []loci.Kind{loci.KindMemory}, NoVector: q.kind == protocol.KindText, Exact: q.exact}
	if s.facts != nil {
		req.Kinds[0] = loci.KindFact
	}
	if q.tag != "" {
		req.Filter.Tags = []string{q.tag}
	}
	if q.kind == protocol.KindHybrid {
		ctx = withVector(ctx, q.vector)
	}
	result, err := s.db.Search(ctx, req)
	if err != nil {
		return nil, err
	}
	if d := &result.Diagnostics; len(d.Degraded) > 0 || !d.TextUsed || d.VectorUsed == req.NoVector {
		return nil, fmt.Errorf("the search had to do with less: %+v", *d)
	}
	out := make([]int64, len(result.Hits))
	for i := range result.Hits {
		switch r := result.Hits[i].Record.(type) {
		case *loci.Fact:
			out[i] = int64(r.ID)
		case *loci.Memory:
			out[i] = int64(r.ID)
		default:
			return nil, fmt.Errorf("a hit is a %T", r)
		}
	}
	return out, nil
}

func (s *store) askVector(ctx context.Context, q question) ([]int64, error) {
	req := agent.QueryRequest{Embedding: q.vector, K: &q.k, Approximate: !q.exact}
	if q.tag != "" {
		req.Tags = []string{q.tag}
	}
	found, err := s.facts.QueryHits(ctx, req)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(found.Hits))
	for i, h := range found.Hits {
		out[i] = int64(h.ID)
	}
	return out, nil
}

// passer is the embedder of a program that has its vectors from somewhere else: a
// search carries the one of its query.
type passer struct{ dimension int }

// vectorKey is where a context keeps the vector.
type vectorKey struct{}

func withVector(ctx context.Context, v []float32) context.Context {
	return context.WithValue(ctx, vectorKey{}, v)
}

// Embed implements embed.Embedder. It is asked for vectors of passages only when it
// is registered, to see that it gives such as fit the space.
func (p passer) Embed(ctx context.Context, texts []string, purpose embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	if v, ok := ctx.Value(vectorKey{}).([]float32); ok && purpose == embed.Query && len(texts) == 1 {
		out[0] = v
		return out, nil
	}
	if purpose == embed.Query {
		return nil, errors.New("the search carries no vector")
	}
	for i, text := range texts {
		out[i] = make([]float32, p.dimension)
		out[i][len(text)%p.dimension] = 1
	}
	return out, nil
}
