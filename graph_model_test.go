package loci

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// graphModel is what the graph store should do, in the simplest way.
type graphModel struct {
	entities  map[ID]Entity
	relations map[ID]Relation
	events    map[ID]Event
	lastID    ID
	revision  int64
}

func (m *graphModel) clone() *graphModel {
	return &graphModel{maps.Clone(m.entities), maps.Clone(m.relations), maps.Clone(m.events), m.lastID, m.revision}
}

func (m *graphModel) nextID() ID { m.lastID++; return m.lastID }

// head settles a header; old is nil for a new record.
func (m *graphModel) head(in *RecordInput, old *Header, merge bool, now int64) Header {
	h := Header{Namespace: DefaultNamespace, Scope: valueOr(in.Scope, PublicScope), Tags: in.Tags, Evidence: in.Evidence,
		CreatedAtUS: now, UpdatedAtUS: now, Revision: m.revision}
	if old == nil {
		h.ID = m.nextID()
		return h
	}
	h.ID, h.Namespace, h.Scope, h.CreatedAtUS = old.ID, old.Namespace, valueOr(in.Scope, old.Scope), old.CreatedAtUS
	if merge {
		h.Tags = union(old.Tags, in.Tags)
		h.Evidence = slices.Clone(old.Evidence)
		for _, e := range in.Evidence {
			if !slices.ContainsFunc(h.Evidence, func(o Evidence) bool { return o.Source == e.Source }) {
				h.Evidence = append(h.Evidence, e)
			}
		}
	}
	return h
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func (m *graphModel) referred(id ID) bool {
	for _, r := range m.relations {
		if r.SubjectID == id || r.ObjectID == id {
			return true
		}
	}
	for _, v := range m.events {
		if slices.Contains(v.Participants, id) {
			return true
		}
	}
	return false
}

// batch applies a batch to a copy; a code says that it should fail.
func (m *graphModel) batch(b GraphBatch, now int64) (*graphModel, Code) {
	m = m.clone()
	m.revision++
	refs := map[string]ID{}
	renamed := map[ID]bool{}
	for _, in := range b.Entities {
		e := Entity{Name: in.Name, EntityType: valueOr(in.EntityType, DefaultEntityType), Aliases: union(in.Aliases, nil),
			Attributes: in.Attributes, Summary: in.Summary}
		var old *Entity
		if in.ID != 0 {
			x, ok := m.entities[in.ID]
			if !ok {
				return nil, ErrNotFound
			}
			old = &x
		}
		if in.Match == MatchByName {
			for _, id := range slices.Sorted(maps.Keys(m.entities)) {
				x := m.entities[id]
				if strings.EqualFold(x.Name, in.Name) && x.EntityType == e.EntityType && x.Scope == valueOr(in.Scope, PublicScope) {
					if old != nil {
						return nil, ErrConflict
					}
					old = &x
				}
			}
			if old != nil {
				e.Name, e.Aliases = old.Name, union(old.Aliases, e.Aliases)
				if e.Summary == "" {
					e.Summary = old.Summary
				}
				e.Attributes = maps.Clone(old.Attributes)
				for k, values := range in.Attributes {
					for _, v := range values {
						if !slices.Contains(e.Attributes[k], v) {
							if e.Attributes == nil {
								e.Attributes = map[string][]string{}
							}
							e.Attributes[k] = append(slices.Clone(e.Attributes[k]), v)
						}
					}
				}
			}
		}
		if old == nil {
			e.Header = m.head(&in.RecordInput, nil, false, now)
		} else {
			e.Header = m.head(&in.RecordInput, &old.Header, in.Match != "", now)
			if e.Scope != old.Scope && m.referred(old.ID) {
				return nil, ErrConflict
			}
			if e.Name != old.Name {
				renamed[e.ID] = true
			}
		}
		m.entities[e.ID] = e
		refs[in.Ref] = e.ID
	}
	end := func(r EntityRef, scope string) (ID, bool) {
		id := r.ID
		if r.Ref != "" {
			id = refs[r.Ref]
		}
		e, ok := m.entities[id]
		return id, ok && (e.Scope == scope || e.Scope == PublicScope)
	}
	for _, in := range b.Relations {
		var old *Relation
		scope := valueOr(in.Scope, PublicScope)
		if in.ID != 0 {
			x, ok := m.relations[in.ID]
			if !ok {
				return nil, ErrNotFound
			}
			old, scope = &x, valueOr(in.Scope, x.Scope)
		}
		subject, ok1 := end(in.Subject, scope)
		object, ok2 := end(in.Object, scope)
		if !ok1 || !ok2 {
			return nil, ErrNotFound
		}
		r := Relation{SubjectID: subject, Predicate: in.Predicate, ObjectID: object, Reason: in.Reason, Confidence: valueOr(in.Confidence, 0.8)}
		var same *Relation
		for _, x := range m.relations {
			if x.Scope == scope && x.SubjectID == subject && x.ObjectID == object && strings.EqualFold(x.Predicate, in.Predicate) {
				same = &x
			}
		}
		switch {
		case in.ID != 0:
			if same != nil && same.ID != in.ID {
				return nil, ErrConflict
			}
			r.Header = m.head(&in.RecordInput, &old.Header, false, now)
		case same != nil:
			r.Header = m.head(&in.RecordInput, &same.Header, true, now)
			r.Predicate, r.Confidence = same.Predicate, valueOr(in.Confidence, same.Confidence)
			if r.Reason == "" {
				r.Reason = same.Reason
			}
		default:
			r.Header = m.head(&in.RecordInput, nil, false, now)
		}
		m.relations[r.ID] = r
	}
	for _, in := range b.Events {
		var old *Event
		scope := valueOr(in.Scope, PublicScope)
		if in.ID != 0 {
			x, ok := m.events[in.ID]
			if !ok {
				return nil, ErrNotFound
			}
			old, scope = &x, valueOr(in.Scope, x.Scope)
		}
		v := Event{Name: in.Name, Summary: in.Summary, Reason: in.Reason, Confidence: valueOr(in.Confidence, 0.8)}
		for _, p := range in.Participants {
			id, ok := end(p, scope)
			if !ok {
				return nil, ErrNotFound
			}
			v.Participants = append(v.Participants, id)
		}
		slices.Sort(v.Participants)
		v.Participants = slices.Compact(v.Participants)
		var same *Event
		for _, x := range m.events {
			if x.Scope == scope && strings.EqualFold(x.Name, in.Name) && slices.Equal(x.Participants, v.Participants) {
				same = &x
			}
		}
		switch {
		case in.ID != 0:
			if same != nil && same.ID != in.ID {
				return nil, ErrConflict
			}
			v.Header = m.head(&in.RecordInput, &old.Header, false, now)
		case same != nil:
			v.Header = m.head(&in.RecordInput, &same.Header, true, now)
			v.Name, v.Confidence = same.Name, valueOr(in.Confidence, same.Confidence)
			if v.Summary == "" {
				v.Summary = same.Summary
			}
			if v.Reason == "" {
				v.Reason = same.Reason
			}
		default:
			v.Header = m.head(&in.RecordInput, nil, false, now)
		}
		m.events[v.ID] = v
	}
	for id, r := range m.relations {
		if renamed[r.SubjectID] || renamed[r.ObjectID] {
			r.Revision = m.revision
			m.relations[id] = r
		}
	}
	for id, v := range m.events {
		if slices.ContainsFunc(v.Participants, func(p ID) bool { return renamed[p] }) {
			v.Revision = m.revision
			m.events[id] = v
		}
	}
	return m, ""
}

// remove is delete_by_filter.
func (m *graphModel) remove(covers func(*Header) bool) (*graphModel, int64, Code) {
	m = m.clone()
	var n int64
	for id, r := range m.relations {
		if covers(&r.Header) {
			delete(m.relations, id)
			n++
		}
	}
	for id, v := range m.events {
		if covers(&v.Header) {
			delete(m.events, id)
			n++
		}
	}
	for id, e := range m.entities {
		if !covers(&e.Header) {
			continue
		}
		if m.referred(id) {
			return nil, 0, ErrConflict
		}
		delete(m.entities, id)
		n++
	}
	if n > 0 {
		m.revision++
	}
	return m, n, ""
}

// texts gives, by key, the words that a search should find each record by.
func (m *graphModel) texts() map[string]string {
	out := map[string]string{}
	for id, e := range m.entities {
		text := e.Name + " " + strings.Join(e.Aliases, " ") + " " + e.Summary + " " + strings.Join(e.Tags, " ")
		for k, values := range e.Attributes {
			text += " " + k + " " + strings.Join(values, " ")
		}
		out[key(KindEntity, id)] = text
	}
	for id, r := range m.relations {
		out[key(KindRelation, id)] = strings.Join([]string{m.entities[r.SubjectID].Name, r.Predicate, m.entities[r.ObjectID].Name, r.Reason,
			strings.Join(r.Tags, " ")}, " ")
	}
	for id, v := range m.events {
		text := strings.Join([]string{v.Name, v.Summary, v.Reason, strings.Join(v.Tags, " ")}, " ")
		for _, p := range v.Participants {
			text += " " + m.entities[p].Name
		}
		out[key(KindEvent, id)] = text
	}
	return out
}

var graphWords = []string{"alder", "birch", "cedar", "Alder", "BIRCH"}

// drawBatch draws a batch over few names, ids and scopes, so that records meet.
// Most of what it names is there.
func drawBatch(rt *rapid.T, m *graphModel) GraphBatch {
	word := rapid.SampledFrom(graphWords)
	scope := rapid.SampledFrom([]*string{nil, nil, nil, nil, nil, nil, new("public"), new("private")})
	some := func(name string) []string { return rapid.SliceOfN(word, 0, 2).Draw(rt, name) }
	record := func(there []ID) RecordInput {
		in := RecordInput{Scope: scope.Draw(rt, "scope")}
		if len(there) > 0 && rapid.IntRange(0, 3).Draw(rt, "update") == 0 {
			in.ID = rapid.SampledFrom(there).Draw(rt, "id")
		} else if rapid.IntRange(0, 40).Draw(rt, "astray") == 0 {
			in.ID = 3
		}
		for _, tag := range some("tags") {
			in.Tags = union(in.Tags, []string{strings.ToLower(tag)})
		}
		if rapid.Bool().Draw(rt, "evidence") {
			in.Evidence = []Evidence{{Source: word.Draw(rt, "source")}}
		}
		return in
	}
	maybe := func(name string) string { return rapid.SampledFrom([]string{"", "", "hazel", "ivy"}).Draw(rt, name) }
	confidence := rapid.SampledFrom([]*float64{nil, new(0.5), new(0.0)})
	var b GraphBatch
	var refs []EntityRef
	for _, id := range slices.Sorted(maps.Keys(m.entities)) {
		refs = append(refs, EntityRef{ID: id})
		if m.entities[id].Scope == PublicScope {
			refs = append(refs, EntityRef{ID: id}, EntityRef{ID: id}, EntityRef{ID: id})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "entities") {
		in := EntityInput{RecordInput: record(slices.Sorted(maps.Keys(m.entities))), Ref: fmt.Sprint("r", i), Name: word.Draw(rt, "name"), Summary: maybe("summary"),
			EntityType: rapid.SampledFrom([]*string{nil, new("place")}).Draw(rt, "type")}
		for _, alias := range some("aliases") {
			in.Aliases = union(in.Aliases, []string{strings.ToLower(alias)})
		}
		if rapid.Bool().Draw(rt, "attributes") {
			in.Attributes = map[string][]string{word.Draw(rt, "key"): {word.Draw(rt, "value")}}
		}
		if in.ID == 0 && rapid.Bool().Draw(rt, "match") {
			in.Match = MatchByName
		}
		b.Entities = append(b.Entities, in)
		refs = append(refs, EntityRef{Ref: in.Ref}, EntityRef{Ref: in.Ref}, EntityRef{Ref: in.Ref})
	}
	if len(refs) == 0 {
		return b
	}
	ref := rapid.SampledFrom(refs)
	for range rapid.IntRange(0, 3).Draw(rt, "relations") {
		b.Relations = append(b.Relations, RelationInput{RecordInput: record(slices.Sorted(maps.Keys(m.relations))), Subject: ref.Draw(rt, "subject"),
			Predicate: rapid.SampledFrom([]string{"near", "Near", "under"}).Draw(rt, "predicate"), Object: ref.Draw(rt, "object"),
			Confidence: confidence.Draw(rt, "confidence"), Reason: maybe("reason")})
	}
	for range rapid.IntRange(0, 2).Draw(rt, "events") {
		b.Events = append(b.Events, EventInput{RecordInput: record(slices.Sorted(maps.Keys(m.events))), Name: word.Draw(rt, "name"), Summary: maybe("summary"),
			Participants: rapid.SliceOfN(ref, 0, 3).Draw(rt, "participants"), Confidence: confidence.Draw(rt, "confidence"), Reason: maybe("reason")})
	}
	return b
}

var everyScope = scoped("public", "private", "other")

// TestGraphModel compares the graph store with the model over random batches
// and deletions, across reopening, and its search with that of a rebuilt index.
func TestGraphModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "db")
		if err != nil {
			rt.Fatal(err)
		}
		clock := newTestClock()
		open := func() *DB {
			db, err := Open(t.Context(), dir, &Options{Clock: clock.Now, WaitForIndex: true})
			if err != nil {
				rt.Fatal(err)
			}
			return db
		}
		db := open()
		defer func() { db.Close() }()
		m := &graphModel{map[ID]Entity{}, map[ID]Relation{}, map[ID]Event{}, 0, 0}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now := clock.Now().UnixMicro() + 1
			clock.Set(now)
			switch rapid.SampledFrom([]string{"batch", "batch", "batch", "batch", "batch", "batch", "delete", "reopen"}).Draw(rt, "step") {
			case "batch":
				b := drawBatch(rt, m)
				next, code := m.batch(b, now)
				r, err := db.Graph().ApplyBatch(t.Context(), b)
				if CodeOf(err) != code {
					rt.Fatalf("%v, want %q", err, code)
				}
				if code == "" {
					if len(b.Entities)+len(b.Relations)+len(b.Events) > 0 {
						m = next
					}
					checkResult(rt, m, b, r)
				}
			case "delete":
				tags := rapid.SampledFrom([][]string{nil, {"alder"}, {"birch"}}).Draw(rt, "tags")
				f := everyScope
				f.Tags = tags
				next, n, code := m.remove(func(h *Header) bool { return len(tags) == 0 || slices.Contains(h.Tags, tags[0]) })
				dry := rapid.Bool().Draw(rt, "dry")
				r, err := db.Graph().DeleteByFilter(t.Context(), DeleteRequest{Filter: f, DryRun: dry})
				if CodeOf(err) != code || code == "" && r.Value != n {
					rt.Fatalf("%+v %v, want %d %q", r, err, n, code)
				}
				if code == "" && !dry {
					m = next
				}
			case "reopen":
				if err := db.Close(); err != nil {
					rt.Fatal(err)
				}
				db = open()
			}
			m.compare(rt, t, db)
		}
		before := searches(rt, t, db)
		if _, err := db.RebuildIndexes(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(before, searches(rt, t, db)); d != "" {
			rt.Fatal(d)
		}
		check, err := db.eng.store.DeepCheck(t.Context())
		if err != nil || check.Integrity != "ok" || check.ForeignKeyErrors != 0 {
			rt.Fatalf("%+v %v", check, err)
		}
	})
}

func checkResult(rt *rapid.T, m *graphModel, b GraphBatch, r *Receipt[GraphBatchResult]) {
	v := r.Value
	if len(v.Entities) != len(b.Entities) || len(v.Relations) != len(b.Relations) || len(v.Events) != len(b.Events) || r.Revision != m.revision {
		rt.Fatalf("%+v at %d, want %d", v, r.Revision, m.revision)
	}
	same := func(got, want any) {
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			rt.Fatal(d)
		}
	}
	for _, e := range v.Entities {
		same(e, m.entities[e.ID])
	}
	for _, r := range v.Relations {
		same(r, m.relations[r.ID])
	}
	for _, v := range v.Events {
		same(v, m.events[v.ID])
	}
}

// compare holds the whole store against the model.
func (m *graphModel) compare(rt *rapid.T, t *testing.T, db *DB) {
	got := graphModel{map[ID]Entity{}, map[ID]Relation{}, map[ID]Event{}, m.lastID, m.revision}
	for _, kind := range []Kind{KindEntity, KindRelation, KindEvent} {
		page, err := db.Graph().List(t.Context(), kind, PageRequest{Filter: everyScope, Limit: new(MaxPage)})
		if err != nil {
			rt.Fatal(err)
		}
		for _, item := range page.Items {
			switch x := item.(type) {
			case *Entity:
				got.entities[x.ID] = *x
			case *Relation:
				got.relations[x.ID] = *x
			case *Event:
				got.events[x.ID] = *x
			}
		}
	}
	if d := cmp.Diff(m, &got, cmpopts.EquateEmpty(), cmp.AllowUnexported(graphModel{})); d != "" {
		rt.Fatal(d)
	}
	for _, word := range []string{"alder", "birch", "cedar", "hazel", "near"} {
		var want []string
		for key, text := range m.texts() {
			if slices.Contains(strings.Fields(strings.ToLower(text)), word) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		r, err := db.Search(t.Context(), SearchRequest{Query: word, Filter: everyScope, Limit: new(1000)})
		if err != nil {
			rt.Fatal(err)
		}
		var keys []string
		for _, h := range r.Hits {
			keys = append(keys, h.Key)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			rt.Fatalf("%s finds %v, want %v", word, keys, want)
		}
	}
}

// searches gives hits with their scores.
func searches(rt *rapid.T, t *testing.T, db *DB) map[string][]string {
	out := map[string][]string{}
	for _, query := range []string{"alder", "birch near", "cedar hazel ivy", "under"} {
		r, err := db.Search(t.Context(), SearchRequest{Query: query, Filter: everyScope, Limit: new(1000)})
		if err != nil {
			rt.Fatal(err)
		}
		for _, h := range r.Hits {
			out[query] = append(out[query], fmt.Sprintf("%s %.9f %.9f", h.Key, h.Score, *h.TextScore))
		}
	}
	return out
}
