package loci

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// namesByID are the names of entities.
type namesByID map[int64]string

func (n namesByID) EntityName(id int64) (string, error) {
	if name, ok := n[id]; ok {
		return name, nil
	}
	return "", ErrNotFound
}

// TestCopyOf shows a record of every kind as a page.
func TestCopyOf(t *testing.T) {
	head := func(kind store.Kind) store.Record {
		return store.Record{ID: 9, Kind: kind, Scope: "s", Revision: 4, Created: 5, Updated: 6, Tags: []string{"t"}}
	}
	names := namesByID{1: "Ada", 2: "Bob"}
	for _, c := range []struct {
		record                 store.Stored
		title, content, source string
	}{
		{&store.Memory{Record: head(store.KindMemory), Judgment: " it rains ", Reasoning: "clouds"}, "", " it rains \nclouds", "memory"},
		{&store.Memory{Record: head(store.KindMemory), Judgment: "it rains"}, "", "it rains", "memory"},
		{&store.Entity{Record: head(store.KindEntity), Name: "Ada", Summary: "printer", Aliases: []string{"countess", "a.l."}}, "Ada", "printer\ncountess, a.l.", "entity"},
		{&store.Entity{Record: head(store.KindEntity), Name: "Ada"}, "Ada", "Ada", "entity"},
		{&store.Relation{Record: head(store.KindRelation), Subject: 1, Predicate: "knows", Object: 2, Reason: "school"}, "", "Ada knows Bob\nschool", "relation"},
		{&store.Event{Record: head(store.KindEvent), Name: "sale", Participants: []int64{2, 1}}, "sale", "Bob, Ada", "event"},
		{&store.Event{Record: head(store.KindEvent), Name: "sale"}, "sale", "sale", "event"},
		{&store.Chunk{Record: head(store.KindChunk), NotePath: "a/b.md", Offset: 12, Limit: 19, Content: "  text\n"}, "b", "  text\n", "a/b.md:12-30"},
	} {
		got, err := copyOf(names, c.record)
		want := &link.Copy{Kind: c.record.Head().Kind, ID: 9, Scope: "s", Revision: 4, Created: 5, Updated: 6, Tags: []string{"t"},
			Title: c.title, Content: c.content, Source: c.source}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v %s", err, d)
		}
	}
	for _, r := range []store.Stored{&store.Page{Record: head(store.KindPage)}, &store.Note{Record: head(store.KindNote)}} {
		if got, err := copyOf(names, r); got != nil || err != nil {
			t.Errorf("%T: %+v, %v", r, got, err)
		}
	}
	for _, r := range []store.Stored{&store.Relation{Subject: 1, Object: 3}, &store.Event{Participants: []int64{3}}} {
		if got, err := copyOf(names, r); got != nil || err == nil {
			t.Errorf("%T of somebody who is not there: %+v, %v", r, got, err)
		}
	}
}

// TestLinkCopyOf asks for records by namespace, kind and id.
func TestLinkCopyOf(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	m := addMemory(t, db, MemoryInput{Judgment: "it rains", RecordInput: RecordInput{Namespace: new("n"), Scope: new("s")}})
	for _, c := range []struct {
		namespace string
		kind      store.Kind
		id        ID
		there     bool
	}{
		{"n", store.KindMemory, m.ID, true},
		{"m", store.KindMemory, m.ID, false},
		{"n", store.KindEntity, m.ID, false},
		{"n", store.KindMemory, m.ID + 1, false},
	} {
		got, err := db.Link().CopyOf(t.Context(), c.namespace, c.kind, int64(c.id))
		if err != nil || (got != nil) != c.there || c.there && (got.Scope != "s" || got.Revision != m.Revision) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
