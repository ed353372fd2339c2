package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/foreign"
)

// A batch of an import ends at either of these.
const (
	importBatch = 500
	importBytes = 8 << 20
)

// metadataText is a key of metadata that holds text.
func metadataText(m loci.Metadata, key string) string {
	var s string
	if raw := m.Get(key); raw == nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// knownAt reads, once for each place, what earlier imports of this source made.
func (im *foreignImport) knownAt(ctx context.Context, at importPlace) (map[string]knownRecord, error) {
	if known, ok := im.known[at]; ok {
		return known, nil
	}
	known := map[string]knownRecord{}
	page := loci.PageRequest{Filter: at.filter(), Limit: new(loci.MaxPage)}
	for {
		got, err := im.db.Memories().List(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, m := range got.Items {
			key := metadataText(m.Metadata, foreign.KeyName)
			if !strings.HasPrefix(key, string(im.in.From)+":") {
				continue
			}
			hash := metadataText(m.Metadata, foreign.HashName)
			known[key] = knownRecord{m.ID, hash, foreign.Hash(m.Judgment, m.Reasoning) != hash}
		}
		if got.NextCursor == 0 {
			break
		}
		page.After = got.NextCursor
	}
	im.known[at] = known
	return known, nil
}

// pendingMemory is a memory on its way in.
type pendingMemory struct {
	where string
	input loci.MemoryInput
}

// memories adopts the memories. Those that changed at the source come first: the
// text that one of them loses may be that of another, which then is a memory of
// its own.
func (im *foreignImport) memories(ctx context.Context) error {
	var changed, others []pendingMemory
	seen := map[string]string{} // hash of each key of the source
	for i := range im.plan.Memories {
		m := &im.plan.Memories[i]
		at, err := im.memoryPlace(m)
		if err != nil {
			return err
		}
		in := m.Input
		at.put(&in.RecordInput)
		hash := foreign.Hash(in.Judgment, in.Reasoning)
		key := m.Key
		for n := 2; ; n++ {
			id := at.namespace + "\x00" + at.scope + "\x00" + key
			if before, taken := seen[id]; !taken || before == hash {
				seen[id] = hash
				break
			}
			key = fmt.Sprintf("%s~%d", m.Key, n) // an id that stands for several texts
		}
		known, err := im.knownAt(ctx, at)
		if err != nil {
			return err
		}
		if k, ok := known[key]; ok {
			switch {
			case k.hash == hash:
				im.count("memory", loci.AdoptUnchanged)
				if err := im.step(ctx, 1); err != nil {
					return err
				}
				continue
			case k.edited:
				im.leave(m.Where, "memory", "", fmt.Sprintf("has changed at the source since it was imported, and memory %d has changed here: it keeps its text", k.id))
				if err := im.step(ctx, 1); err != nil {
					return err
				}
				continue
			}
			in.ID = k.id
		}
		in.Metadata = foreign.WithKey(in.Metadata, key, hash)
		if in.ID != 0 {
			changed = append(changed, pendingMemory{m.Where, in})
		} else {
			others = append(others, pendingMemory{m.Where, in})
		}
	}
	for _, list := range [][]pendingMemory{changed, others} {
		if err := im.adoptMemories(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// adoptMemories adopts a list, a batch at a time.
func (im *foreignImport) adoptMemories(ctx context.Context, list []pendingMemory) error {
	for len(list) > 0 {
		a := loci.Adoption{DryRun: im.in.DryRun}
		n, size := 0, 0
		for ; n < len(list) && n < importBatch && size < importBytes; n++ {
			in := list[n].input
			a.Memories = append(a.Memories, in)
			size += len(in.Judgment) + len(in.Reasoning) + len(in.Metadata)
		}
		res, err := im.db.Adopt(ctx, a)
		if err != nil {
			return err
		}
		for i, got := range res.Memories {
			if got.Outcome == loci.AdoptRefused {
				im.refuse(list[i].where, "memory", got.Err)
				continue
			}
			im.count("memory", got.Outcome)
		}
		list = list[n:]
		if err := im.step(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// memoryPlace is where a memory goes; its user counts.
func (im *foreignImport) memoryPlace(m *foreign.Memory) (importPlace, error) {
	at := im.place(m.Input.Namespace, m.Input.Scope)
	if m.User == "" {
		return at, nil
	}
	user := "user:" + m.User
	if im.in.Users == usersInScopes {
		at.scope = user
		return at, nil
	}
	m.Input.Tags = append(m.Input.Tags, user)
	return at, nil
}

// graph adopts the entities.
func (im *foreignImport) graph(ctx context.Context) error {
	exact, err := im.knownEntities(ctx)
	if err != nil {
		return err
	}
	for from := 0; from < len(im.plan.Entities); {
		a := loci.Adoption{DryRun: im.in.DryRun}
		to, size := from, 0
		for ; to < len(im.plan.Entities) && to-from < importBatch && size < importBytes; to++ {
			e := &im.plan.Entities[to]
			at := im.place(e.Input.Namespace, e.Input.Scope)
			at.put(&e.Input.RecordInput)
			if e.Exact {
				e.Input.ID = exact[at][metadataText(e.Input.Metadata, foreign.KeyName)]
			}
			a.Graph.Entities = append(a.Graph.Entities, e.Input)
			size += len(e.Input.Name) + len(e.Input.Summary) + len(e.Input.Metadata)
		}
		res, err := im.db.Adopt(ctx, a)
		if err != nil {
			return err
		}
		for i, got := range res.Entities {
			e := &im.plan.Entities[from+i]
			if got.Outcome == loci.AdoptRefused {
				im.refuse(e.Where, "entity", got.Err)
				continue
			}
			im.count("entity", got.Outcome)
			im.entities[e.Key] = adoptedEntity{got.ID, im.place(e.Input.Namespace, e.Input.Scope), &e.Input}
		}
		if err := im.step(ctx, to-from); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// knownEntities reads the entities that an earlier import made and that only
// their keys tell from others of their name.
func (im *foreignImport) knownEntities(ctx context.Context) (map[importPlace]map[string]loci.ID, error) {
	out := map[importPlace]map[string]loci.ID{}
	for i := range im.plan.Entities {
		e := &im.plan.Entities[i]
		at := im.place(e.Input.Namespace, e.Input.Scope)
		if !e.Exact || out[at] != nil {
			continue
		}
		out[at] = map[string]loci.ID{}
		page := loci.PageRequest{Filter: at.filter(), Limit: new(loci.MaxPage)}
		for {
			got, err := im.db.Graph().List(ctx, loci.KindEntity, page)
			if err != nil {
				return nil, err
			}
			for _, item := range got.Items {
				if known, ok := item.(*loci.Entity); ok {
					out[at][metadataText(known.Metadata, foreign.KeyName)] = known.ID
				}
			}
			if got.NextCursor == 0 {
				break
			}
			page.After = got.NextCursor
		}
	}
	return out, nil
}

// linkBatch is a batch of relations or events, with what they refer to.
type linkBatch struct {
	im    *foreignImport
	a     loci.Adoption
	where []string
	refs  map[string]string // of entities that a dry run would make
	size  int
}

func (im *foreignImport) newLinks() *linkBatch {
	return &linkBatch{im: im, a: loci.Adoption{DryRun: im.in.DryRun}, refs: map[string]string{}}
}

// end refers to an entity of the plan; false when that was left out.
func (b *linkBatch) end(key string) (loci.EntityRef, bool) {
	e, ok := b.im.entities[key]
	switch {
	case !ok:
		return loci.EntityRef{}, false
	case e.id != 0:
		return loci.EntityRef{ID: e.id}, true
	}
	// A dry run made it and took it back, so it is made again beside its relation.
	if b.refs[key] == "" {
		b.refs[key] = fmt.Sprintf("e%d", len(b.refs))
		in := *e.input
		in.Ref = b.refs[key]
		b.a.Graph.Entities = append(b.a.Graph.Entities, in)
		b.size += len(in.Summary) + len(in.Metadata)
	}
	return loci.EntityRef{Ref: b.refs[key]}, true
}

// full says whether the batch should go.
func (b *linkBatch) full() bool {
	return len(b.where) >= importBatch || len(b.a.Graph.Entities) > loci.MaxBatch/2 || b.size >= importBytes
}

// flush adopts the batch and counts what became of it.
func (b *linkBatch) flush(ctx context.Context, kind string) error {
	if len(b.where) == 0 {
		return nil
	}
	res, err := b.im.db.Adopt(ctx, b.a)
	if err != nil {
		return err
	}
	list := res.Relations
	if kind == "event" {
		list = res.Events
	}
	for i, got := range list {
		if got.Outcome == loci.AdoptRefused {
			b.im.refuse(b.where[i], kind, got.Err)
			continue
		}
		b.im.count(kind, got.Outcome)
	}
	n := len(b.where)
	*b = *b.im.newLinks()
	return b.im.step(ctx, n)
}

const endLeftOut = "refers to an entity that is left out"

// relations adopts the relations.
func (im *foreignImport) relations(ctx context.Context) error {
	b := im.newLinks()
	for i := range im.plan.Relations {
		r := &im.plan.Relations[i]
		in := r.Input
		im.place(in.Namespace, in.Scope).put(&in.RecordInput)
		var ok bool
		if in.Subject, ok = b.end(r.Subject); !ok {
			im.leave(r.Where, "relation", "subject", endLeftOut)
			continue
		}
		if in.Object, ok = b.end(r.Object); !ok {
			im.leave(r.Where, "relation", "object", endLeftOut)
			continue
		}
		b.a.Graph.Relations = append(b.a.Graph.Relations, in)
		b.where = append(b.where, r.Where)
		if b.size += len(in.Reason) + len(in.Metadata); b.full() {
			if err := b.flush(ctx, "relation"); err != nil {
				return err
			}
		}
	}
	return b.flush(ctx, "relation")
}

// events adopts the events.
func (im *foreignImport) events(ctx context.Context) error {
	b := im.newLinks()
next:
	for i := range im.plan.Events {
		e := &im.plan.Events[i]
		in := e.Input
		im.place(in.Namespace, in.Scope).put(&in.RecordInput)
		in.Participants = nil
		for _, key := range e.Participants {
			ref, ok := b.end(key)
			if !ok {
				im.leave(e.Where, "event", "participants", endLeftOut)
				continue next
			}
			in.Participants = append(in.Participants, ref)
		}
		b.a.Graph.Events = append(b.a.Graph.Events, in)
		b.where = append(b.where, e.Where)
		if b.size += len(in.Summary) + len(in.Reason) + len(in.Metadata); b.full() {
			if err := b.flush(ctx, "event"); err != nil {
				return err
			}
		}
	}
	return b.flush(ctx, "event")
}

// isRefusal says whether an error is about the piece and not about the store.
func isRefusal(err error) bool {
	for _, code := range []loci.Code{
		loci.ErrValidation, loci.ErrConflict, loci.ErrNotFound, loci.ErrForbidden, loci.ErrInvalidVector, loci.ErrStaleRevision,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
