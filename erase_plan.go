package loci

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/internal/store"
)

// erasePlan is what an erasure found to be done, in a snapshot.
type erasePlan struct {
	*eraseWhat
	namespace int64 // its dictionary id, 0 when the store does not know it
	// chosen are the records that go, but for pages that are copies of them and those
	// of contexts that go as a whole.
	chosen    map[int64]chosenRecord
	contexts  []*store.ContextScope // that go as a whole
	agents    []*store.AgentMemory  // likewise
	settings  bool                  // of the namespace
	evidence  []int64               // records with evidence of chunks that go
	points    map[pointPlace]bool   // points that go, as snapshots know them
	mentioned []mentionedRecord     // that stay
	words     []string              // to look for, the subject's names included
	noteFiles []string              // the first of those that go
	notes     int                   // that go
}

// chosenRecord says of a record that goes what it is.
type chosenRecord struct {
	kind store.Kind
	// asked is set where the filter alone chose it: what does not fit any more by the
	// time that the writer comes to it stays.
	asked bool
}

type mentionedRecord struct {
	id   int64
	kind store.Kind
}

// pointPlace is a point as its caller knows it, in a scope of the plan's namespace.
type pointPlace struct {
	scope string
	kind  store.Kind
	key   uint64
}

// eraseScan is how many records are read at a time.
const eraseScan = 250

// find reads what there is to be done.
func (p *erasePlan) find(ctx context.Context, tx *store.ReadTx) (err error) {
	p.chosen, p.points, p.words = map[int64]chosenRecord{}, map[pointPlace]bool{}, slices.Clone(p.eraseWhat.words)
	var known bool
	if p.namespace, known, err = tx.StringID(p.filter.Namespace); err != nil || !known {
		p.namespace = 0
		return err
	}
	if p.subject != "" {
		if err := p.findSubject(tx); err != nil {
			return err
		}
	}
	for id := range p.ids {
		if err := p.findID(tx, id); err != nil {
			return err
		}
	}
	if !p.picks() || len(p.words) > 0 {
		if err := p.scan(ctx, tx); err != nil {
			return err
		}
	}
	if p.whole() {
		if err := p.findWhole(tx); err != nil {
			return err
		}
	}
	return p.findRest(ctx, tx)
}

// findSubject chooses the entities that the subject names and takes over their names.
func (p *erasePlan) findSubject(tx *store.ReadTx) error {
	name := normalize(p.subject)
	p.words = append(p.words, name)
	ids, err := tx.EntitiesNamed(p.namespace, name)
	if err != nil {
		return err
	}
	if id, err := strconv.ParseInt(p.subject, 10, 64); err == nil {
		ids = append(ids, id)
		p.words = p.words[:len(p.words)-1] // a number is no name
	}
	for _, id := range ids {
		e, err := tx.Entity(id)
		if err != nil {
			return err
		}
		if e == nil || !p.covers(&e.Record) {
			continue
		}
		p.choose(e, false)
		for _, word := range append([]string{e.NameKey}, e.Aliases...) {
			if word = normalize(word); word != "" && !slices.Contains(p.words, word) {
				p.words = append(p.words, word)
			}
		}
	}
	return nil
}

func (p *erasePlan) findID(tx *store.ReadTx, id int64) error {
	kind, _, _, err := tx.Place(id)
	if err != nil || kind == 0 {
		return err
	}
	r, err := tx.RecordOf(kind, id)
	if err != nil || r == nil || !p.covers(r.Head()) {
		return err
	}
	p.choose(r, false)
	return nil
}

// scan looks at every record of the namespace.
func (p *erasePlan) scan(ctx context.Context, tx *store.ReadTx) error {
	for after := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, next, err := tx.ScanNamespace(p.namespace, after, eraseScan)
		if err != nil {
			return err
		}
		if next == after {
			return nil
		}
		after = next
		for _, r := range batch {
			if err := p.look(tx, r); err != nil {
				return err
			}
		}
	}
}

// look chooses a record if it is meant, or notes that it mentions a word.
func (p *erasePlan) look(tx *store.ReadTx, r store.Stored) error {
	if !p.covers(r.Head()) {
		return nil
	}
	if !p.picks() {
		// Pages of a context that goes as a whole go with it.
		if r.Head().Kind != store.KindPage || !p.whole() {
			p.choose(r, true)
		}
		return nil
	}
	if _, chosen := p.chosen[r.Head().ID]; chosen {
		return nil
	}
	found, err := mentions(tx, r, p.words)
	switch {
	case err != nil || !found:
		return err
	case p.mentions:
		p.choose(r, false)
	default:
		p.mentioned = append(p.mentioned, mentionedRecord{r.Head().ID, r.Head().Kind})
	}
	return nil
}

// covers says whether a record is one of those that the request looks at.
func (p *eraseWhat) covers(r *store.Record) bool {
	f := p.filter.Filter
	f.Kind = r.Kind
	if p.every {
		f.Scopes = []string{r.Scope}
	}
	if len(p.filter.kinds) > 0 && !slices.ContainsFunc(p.filter.kinds, func(k index.Kind) bool { return store.Kind(k) == r.Kind }) {
		return false
	}
	return f.Covers(r) && p.filter.coversMetadata(r)
}

// choose has a record go.
func (p *erasePlan) choose(r store.Stored, asked bool) {
	head := r.Head()
	if !p.ofNotes(r) {
		return
	}
	if _, again := p.chosen[head.ID]; again {
		return
	}
	p.chosen[head.ID] = chosenRecord{head.Kind, asked}
	switch r := r.(type) {
	case *store.Point:
		p.points[pointPlace{r.Scope, r.Kind, r.Key}] = true
	case *store.Note:
		if p.notes++; len(p.noteFiles) < maxNoteFilesTold {
			p.noteFiles = append(p.noteFiles, r.Path)
		}
	}
}

// ofNotes says whether a record is of one of the notes that the filter names, if it
// names any.
func (p *eraseWhat) ofNotes(r store.Stored) bool {
	if len(p.filter.noteIDs) == 0 {
		return true
	}
	switch r := r.(type) {
	case *store.Note:
		return slices.Contains(p.filter.noteIDs, ID(r.ID))
	case *store.Chunk:
		return slices.Contains(p.filter.noteIDs, ID(r.NoteID))
	}
	return false
}

// findWhole finds what of the scopes is no record.
func (p *erasePlan) findWhole(tx *store.ReadTx) error {
	in := func(scope string) bool { return p.every || slices.Contains(p.filter.Scopes, scope) }
	contexts, err := tx.Contexts(p.filter.Namespace)
	if err != nil {
		return err
	}
	for _, c := range contexts {
		if in(c.Scope) {
			p.contexts = append(p.contexts, c)
		}
	}
	agents, err := tx.AgentMemories()
	if err != nil {
		return err
	}
	for _, m := range agents {
		if m.NamespaceID == p.namespace && in(m.Scope) {
			p.agents = append(p.agents, m)
		}
	}
	p.settings = p.every
	return nil
}

// findRest adds what cannot stay without what was chosen: relations and events of
// entities, notes of chunks, chunks of notes. Then it finds evidence of chunks.
func (p *erasePlan) findRest(ctx context.Context, tx *store.ReadTx) error {
	chunks := map[int64]bool{}
	roots := make([]int64, 0, len(p.chosen))
	for id, c := range p.chosen {
		if c.kind == store.KindEntity || c.kind == store.KindNote || c.kind == store.KindChunk {
			roots = append(roots, id)
		}
	}
	for _, id := range roots {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := tx.RecordOf(p.chosen[id].kind, id)
		if err != nil {
			return err
		}
		err = p.withRest(tx, r, chunks)
		if err != nil {
			return err
		}
	}
	p.mentioned = slices.DeleteFunc(p.mentioned, func(m mentionedRecord) bool {
		_, goes := p.chosen[m.id]
		return goes
	})
	if len(chunks) == 0 {
		return nil
	}
	return tx.EvidenceOf(func(record, chunk int64) {
		if _, goes := p.chosen[record]; !goes && chunks[chunk] && (len(p.evidence) == 0 || p.evidence[len(p.evidence)-1] != record) {
			p.evidence = append(p.evidence, record)
		}
	})
}

func (p *erasePlan) withRest(tx *store.ReadTx, r store.Stored, chunks map[int64]bool) error {
	switch r := r.(type) {
	case *store.Entity:
		standing, err := standingOn(tx, r.ID)
		for _, on := range standing {
			p.chosen[on.Head().ID] = chosenRecord{kind: on.Head().Kind}
		}
		return err
	case *store.Chunk:
		n, err := tx.Note(r.NoteID)
		if err != nil || n == nil {
			return err
		}
		p.choose(n, false)
		return p.withRest(tx, n, chunks)
	case *store.Note:
		all, err := tx.AllChunks(r.ID)
		for _, c := range all {
			p.chosen[c.ID], chunks[c.ID] = chosenRecord{kind: store.KindChunk}, true
		}
		return err
	}
	return nil
}

// standingOn gives the relations and events that an entity stands in.
func standingOn(tx eraseReader, entity int64) (out []store.Stored, err error) {
	for _, look := range []struct {
		kind store.Kind
		ids  func(int64) ([]int64, error)
	}{{store.KindRelation, tx.RelationsOf}, {store.KindEvent, tx.EventsOf}} {
		ids, err := look.ids(entity)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			r, err := tx.RecordOf(look.kind, id)
			if err != nil {
				return nil, err
			}
			if r != nil {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// eraseOrder is the order in which kinds go: what refers before what is referred to, and
// entities last, since they say what a subject is called. Chunks go with their notes.
var eraseOrder = [...]store.Kind{
	store.KindRelation, store.KindEvent, store.KindNote, store.KindMemory, store.KindPage, store.KindFact, store.KindEpisode,
	store.KindProcedure, store.KindEntity,
}

// inOrder are the ids of the records of a kind, ascending.
func (p *erasePlan) inOrder(kind store.Kind) (ids []int64) {
	for id, c := range p.chosen {
		if c.kind == kind {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// contextScope is the canonical form of a context's scope that is written as a JSON
// array; any other scope is itself.
func contextScope(scope string) string {
	var parts []string
	if scope == "" || scope[0] != '[' || json.Unmarshal([]byte(scope), &parts) != nil || len(parts) == 0 {
		return scope
	}
	text := []byte{'['}
	for i, part := range parts {
		if i > 0 {
			text = append(text, ',')
		}
		text = render.AppendString(text, part)
	}
	return string(append(text, ']'))
}
