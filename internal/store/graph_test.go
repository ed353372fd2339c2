package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci/internal/errs"
)

func fullEntity(name string, aliases ...string) *Entity {
	m := fullMemory()
	m.Thread, m.Position = "", nil
	return &Entity{
		Record: m.Record, Type: "person", Name: name, NameKey: strings.ToLower(name), Aliases: aliases,
		Attributes: []byte(`{"k":["v"]}`), Summary: "s\x00s",
	}
}

func plainRelation(subject, object *Entity, predicate string) *Relation {
	return &Relation{
		Record:  Record{Namespace: subject.Namespace, Scope: subject.Scope, Tags: []string{"r"}, Evidence: []Evidence{{Source: "s"}}},
		Subject: subject.ID, Predicate: predicate, PredicateKey: strings.ToLower(predicate), Object: object.ID,
		Confidence: 0.25, Reason: "why",
	}
}

func plainEvent(name string, hash int64, participants ...*Entity) *Event {
	v := &Event{
		Record: Record{Namespace: "名字", Scope: "scope"}, Name: name, NameKey: strings.ToLower(name), Summary: "sum",
		Confidence: 1, Reason: "why", IdentityHash: hash,
	}
	for _, e := range participants {
		v.Participants = append(v.Participants, e.ID)
	}
	return v
}

// put writes records in one operation.
func put(t *testing.T, s *Store, records ...Stored) {
	t.Helper()
	write(t, s, func(tx *WriteTx) error {
		for _, r := range records {
			if err := putOne(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func putOne(tx *WriteTx, r Stored) (err error) {
	switch r := r.(type) {
	case *Entity:
		err = tx.AddEntity(r)
	case *Relation:
		err = tx.AddRelation(r)
	case *Event:
		err = tx.AddEvent(r)
	}
	if err == nil {
		tx.Stage(r.Head(), r)
	}
	return err
}

func load(t *testing.T, s *Store, kind Kind, id int64) (r Stored) {
	t.Helper()
	read(t, s, func(tx *ReadTx) (err error) {
		r, err = tx.RecordOf(kind, id)
		return err
	})
	return r
}

func sameStored(t *testing.T, want, got Stored) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Record{}, Entity{})); d != "" {
		t.Error(d)
	}
}

func sameIDs(t *testing.T, got []int64, err error, want ...int64) {
	t.Helper()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
}

func conformGraphRoundTrip(t *testing.T, s *Store, log *hookLog) {
	a, b := fullEntity("A", "x", "y"), fullEntity("B")
	put(t, s, a, b)
	r, v := plainRelation(a, b, "Knows"), plainEvent("V", 7, a, b)
	put(t, s, r, v)
	if len(log.changes) != 2 || log.changes[0].Kind != KindRelation || log.changes[1].Kind != KindEvent || v.Revision != 2 {
		t.Errorf("%+v", log.changes)
	}
	for _, want := range []Stored{a, b, r, v} {
		sameStored(t, want, load(t, s, want.Head().Kind, want.Head().ID))
		for _, other := range []Kind{KindMemory, KindEntity, KindRelation, KindEvent} {
			if other != want.Head().Kind && load(t, s, other, want.Head().ID) != nil {
				t.Errorf("%d is also of kind %d", want.Head().ID, other)
			}
		}
	}

	e := fullEntity("C", "y", "z")
	e.ID, e.Kind, e.Created, e.Summary, e.Attributes, e.Type = b.ID, b.Kind, b.Created, "", nil, "place"
	x := plainRelation(b, a, "other")
	x.ID, x.Kind, x.Confidence, x.Reason, x.Tags = r.ID, r.Kind, 0, "", nil
	w := plainEvent("W", 8, b)
	w.ID, w.Kind, w.Scope = v.ID, v.Kind, "elsewhere"
	write(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.UpdateEntity(b, e), tx.UpdateRelation(r, x), tx.UpdateEvent(v, w))
	})
	for _, want := range []Stored{e, x, w} {
		sameStored(t, want, load(t, s, want.Head().Kind, want.Head().ID))
	}
	write(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.Delete(&x.Record), tx.Delete(&w.Record), tx.Delete(&e.Record), tx.Delete(&a.Record))
	})
	if c := s.Counters(); c.Records() != 0 || c.Revision != 4 {
		t.Errorf("%+v", c)
	}
	read(t, s, func(tx *ReadTx) error {
		for _, table := range []string{"entities", "entity_names", "relations", "events", "participants", "evidence", "record_tags"} {
			n, err := tx.countRows("SELECT 1 FROM " + table)
			if n != 0 || err != nil {
				t.Error(table, n, err)
			}
		}
		return nil
	})
}

func conformGraphLookups(t *testing.T, s *Store, _ *hookLog) {
	a, b, c := fullEntity("A", "a", "shared"), fullEntity("A", "shared"), fullEntity("C", "a")
	c.Scope = "other"
	put(t, s, a, b, c)
	names := func(scope, key string, alias bool, want ...int64) {
		t.Helper()
		read(t, s, func(tx *ReadTx) error {
			look := tx.EntitiesByName
			if alias {
				look = tx.EntitiesByAlias
			}
			ids, err := look("名字", scope, key)
			sameIDs(t, ids, err, want...)
			return nil
		})
	}
	names("scope", "a", false, a.ID, b.ID)
	names("scope", "a", true) // of a it is the name
	names("scope", "shared", true, a.ID, b.ID)
	names("other", "a", true, c.ID)
	names("nowhere", "a", false)
	// A scope's change takes the names along.
	moved := fullEntity("A", "shared")
	moved.ID, moved.Kind, moved.Created, moved.Scope = b.ID, b.Kind, b.Created, "other"
	write(t, s, func(tx *WriteTx) error { return tx.UpdateEntity(b, moved) })
	names("scope", "a", false, a.ID)
	names("other", "a", false, b.ID)
	names("other", "shared", true, b.ID)

	r1, r2, r3 := plainRelation(a, a, "P"), plainRelation(c, a, "p"), plainRelation(a, b, "p")
	r3.Scope = "third"
	v1, v2, v3 := plainEvent("V", 5, a), plainEvent("V", 5, a, c), plainEvent("V", 6, c)
	v2.Scope = "other"
	put(t, s, r1, r2, r3, v1, v2, v3)
	read(t, s, func(tx *ReadTx) error {
		ids, err := tx.RelationsOf(a.ID)
		sameIDs(t, ids, err, r1.ID, r2.ID, r3.ID)
		ids, err = tx.RelationsOfIn(a.ID, []string{"third", "scope", "third", "none"})
		sameIDs(t, ids, err, r1.ID, r3.ID)
		for scope, want := range map[string]int64{"scope": 1, "other": 1, "third": 1, "none": 0} {
			if n, err := tx.CountRelations(a.ID, []string{scope, scope}); n != want || err != nil {
				t.Error(scope, n, err)
			}
		}
		for _, look := range []struct {
			scope, key string
			object     int64
			want       *Relation
		}{{"scope", "p", a.ID, r1}, {"other", "p", a.ID, nil}, {"scope", "q", a.ID, nil}, {"scope", "p", b.ID, nil}, {"third", "p", b.ID, r3}} {
			r, err := tx.RelationByTriple(look.scope, a.ID, look.key, look.object)
			if err != nil || (r == nil) != (look.want == nil) || r != nil && r.ID != look.want.ID {
				t.Error(look, r, err)
			}
		}
		ids, err = tx.EventsOf(a.ID)
		sameIDs(t, ids, err, v1.ID, v2.ID)
		found, err := tx.EventsByHash(5)
		if err != nil || len(found) != 2 || found[0].ID != v1.ID {
			t.Error(found, err)
		}
		name, err := tx.EntityName(a.ID)
		if name != "A" || err != nil {
			t.Error(name, err)
		}
		if name, err = tx.EntityName(r1.ID); name != "" || err != nil {
			t.Error(name, err)
		}
		kind, namespace, scope, err := tx.Place(c.ID)
		if kind != KindEntity || namespace != "名字" || scope != "other" || err != nil {
			t.Error(kind, namespace, scope, err)
		}
		kind, _, _, err = tx.Place(999)
		if kind != 0 || err != nil {
			t.Error(kind, err)
		}
		return nil
	})
}

func conformGraphReferences(t *testing.T, s *Store, _ *hookLog) {
	a, b := fullEntity("A"), fullEntity("B")
	put(t, s, a, b)
	r, v := plainRelation(a, b, "P"), plainEvent("V", 1, a)
	put(t, s, r, v)
	conflict := func(what string, fn func(*WriteTx) error) {
		t.Helper()
		before := *s.Counters()
		_, err := s.Write(t.Context(), fn)
		if !errors.Is(err, errs.Conflict) || *s.Counters() != before {
			t.Error(what, err, *s.Counters())
		}
	}
	remove := func(r *Record) func(*WriteTx) error { return func(tx *WriteTx) error { return tx.Delete(r) } }
	again := plainRelation(a, b, "p")
	conflict("the same triple", func(tx *WriteTx) error { return putOne(tx, again) })
	conflict("no such subject", func(tx *WriteTx) error {
		x := plainRelation(a, b, "q")
		x.Subject = r.ID
		return tx.AddRelation(x)
	})
	conflict("no such participant", func(tx *WriteTx) error {
		x := plainEvent("W", 2, a)
		x.Participants[0] = 999
		return tx.AddEvent(x)
	})
	conflict("a subject", remove(&a.Record))
	conflict("an object", remove(&b.Record))
	// Whatever the code above it forgets, the foreign keys hold.
	conflict("behind the store's back", func(tx *WriteTx) error {
		st, err := tx.stmt(sqlDeleteRecord)
		if err != nil {
			return err
		}
		st.bindInt(1, b.ID)
		tx.Change()
		return st.run()
	})
	write(t, s, remove(&r.Record))
	conflict("a participant", remove(&a.Record))
	write(t, s, remove(&b.Record))
	write(t, s, remove(&v.Record))
	write(t, s, remove(&a.Record))
}

func conformGraphScan(t *testing.T, s *Store, _ *hookLog) {
	hub := fullEntity("hub")
	hub.Tags, hub.Evidence = nil, nil
	put(t, s, hub)
	var batch []Stored
	for i := range 700 {
		v := plainEvent("V", int64(i), hub)
		v.Scope, v.Created = []string{"s0", "s1", "s2"}[i%3], int64(i)
		if i%5 == 0 {
			v.Tags = []string{"fifth"}
		}
		batch = append(batch, v)
	}
	put(t, s, batch...)
	for _, f := range []Filter{
		{Scopes: []string{"s1"}}, {Scopes: []string{"s0", "s2", "s0", "none"}}, {Scopes: []string{"none"}},
		{Scopes: []string{"s0", "s1"}, Tags: []string{"fifth"}}, {Scopes: []string{"s2"}, From: new(int64(300))},
	} {
		f.Namespace, f.Kind = "名字", KindEvent
		for _, want := range []int{0, 1, 300} {
			var expect, scanned, ofHub []int64
			for _, r := range batch {
				if f.Covers(r.Head()) && (want == 0 || len(expect) < want) {
					expect = append(expect, r.Head().ID)
				}
			}
			read(t, s, func(tx *ReadTx) error {
				err := tx.Scan(f, 0, want, func(r Stored) (bool, error) {
					scanned = append(scanned, r.Head().ID)
					return want == 0 || len(scanned) < want, nil
				})
				sameIDs(t, scanned, err, expect...)
				err = tx.ScanEventsOf(hub.ID, f, want, func(v *Event) (bool, error) {
					ofHub = append(ofHub, v.ID)
					return want == 0 || len(ofHub) < want, nil
				})
				sameIDs(t, ofHub, err, expect...)
				return nil
			})
		}
	}
}

// conformAlone holds that an operation that shares no transaction keeps its
// place among the others and takes none of them along when it fails.
func conformAlone(t *testing.T, s *Store, log *hookLog) {
	rng := rand.New(rand.NewPCG(1, 1))
	boom := errors.New("boom")
	gone := testMemory(rng, 0)
	addBatch(t, s, []*Memory{gone})
	before := log.stages
	a, b, c := testMemory(rng, 1), testMemory(rng, 2), testMemory(rng, 3)
	b.Tags = []string{"only of the one that fails"}
	inside, hold := make(chan struct{}), make(chan struct{})
	results := make([]error, 6)
	done := make(chan struct{})
	go func() {
		_, results[0] = s.Write(context.Background(), func(*WriteTx) error { close(inside); <-hold; return nil })
		done <- struct{}{}
	}()
	<-inside
	for i, run := range []func() (int64, error){
		func() (int64, error) { return s.Write(context.Background(), adds(a)) },
		func() (int64, error) {
			return s.WriteMany(context.Background(), func(tx *WriteTx) error { return errors.Join(adds(b)(tx), boom) })
		},
		func() (int64, error) {
			return s.WriteMany(context.Background(), func(tx *WriteTx) error { panic(boom) })
		},
		func() (int64, error) {
			return s.WriteMany(context.Background(), func(tx *WriteTx) error { return tx.Delete(&gone.Record) })
		},
		func() (int64, error) { return s.Write(context.Background(), adds(c)) },
	} {
		go func() {
			_, results[i+1] = run()
			done <- struct{}{}
		}()
		waitFor(t, func() bool { return len(s.writer.queue) == i+1 }) // in this order
	}
	close(hold)
	for range results {
		<-done
	}
	for i, fails := range []bool{false, false, true, true, false, false} {
		if fails != (results[i] != nil) {
			t.Error(i, results[i])
		}
	}
	if !errors.Is(results[2], boom) || a.Revision != 2 || gone.Revision != 1 || c.Revision != 4 || log.stages != before+3 {
		t.Error(results[2], a.Revision, c.Revision, log.stages-before)
	}
	if c := s.Counters(); c.Revision != 4 || c.Records() != 2 {
		t.Errorf("%+v", c)
	}
	if loadMemory(t, s, a.ID) == nil || loadMemory(t, s, c.ID) == nil || loadMemory(t, s, gone.ID) != nil {
		t.Error("not what was written")
	}
	addBatch(t, s, []*Memory{b}) // its strings are added now
	same(t, b, loadMemory(t, s, b.ID))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.WriteMany(ctx, nil); !errors.Is(err, errs.Canceled) {
		t.Error(err)
	}
}
