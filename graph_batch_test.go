package loci

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestGraphBatchIsWhole(t *testing.T) {
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "a", "b")
	r := relate(t, db, relates(ids[0], "p", ids[1]))[0]
	b := GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: ids[0]}, Name: "renamed", Aliases: []string{"other"}}}}
	for i := range 300 {
		b.Entities = append(b.Entities, EntityInput{Name: fmt.Sprint("new", i), Ref: fmt.Sprint("r", i)})
		b.Relations = append(b.Relations, RelationInput{Subject: EntityRef{Ref: fmt.Sprint("r", i)}, Predicate: "p", Object: EntityRef{ID: ids[0]}})
	}
	b.Events = []EventInput{happens("fine", ids[0]), happens("bad", 777)}
	refuses(t, db, ErrNotFound, "events[1].participants[0]", b)
	equal(t, getEntity(t, db, ids[0], ReadFilter{}).Name, "a")
	equal(t, resolved(t, db, "renamed", ReadFilter{}), []ID{})
	equal(t, hitKeys(t, db, "renamed"), []string{})
	equal(t, getRelation(t, db, r, ReadFilter{}).Revision, int64(2))
	b.Events = b.Events[:1]
	out := apply(t, db, b)
	equal(t, len(out.Entities)+len(out.Relations)+len(out.Events), 602)
	equal(t, out.Relations[299].SubjectID, out.Entities[300].ID)
	equal(t, getRelation(t, db, r, ReadFilter{}).Revision, out.Events[0].Revision)
}

func TestGraphRefs(t *testing.T) {
	db := openGraphDB(t, t.TempDir())
	id := entities(t, db, "a")[0]
	for field, b := range map[string]GraphBatch{
		"entities[1].ref":               {Entities: []EntityInput{{Name: "x", Ref: "r"}, {Name: "y", Ref: "r"}}},
		"entities[0].ref":               {Entities: []EntityInput{{Name: "x", Ref: " r"}}},
		"entities[0].match":             {Entities: []EntityInput{{Name: "x", Match: "close"}}},
		"relations[0].subject.ref":      {Relations: []RelationInput{{Subject: EntityRef{Ref: "r"}, Predicate: "p", Object: EntityRef{ID: id}}}},
		"relations[0].subject":          {Relations: []RelationInput{{Predicate: "p", Object: EntityRef{ID: id}}}},
		"relations[0].object":           {Entities: []EntityInput{{Name: "x", Ref: "r"}}, Relations: []RelationInput{{Subject: EntityRef{ID: id}, Predicate: "p", Object: EntityRef{ID: id, Ref: "r"}}}},
		"relations[0].object.id":        {Relations: []RelationInput{relates(id, "p", -1)}},
		"events[0].participants[1]":     {Events: []EventInput{happens("v", id, 0)}},
		"events[0].participants[0].ref": {Events: []EventInput{{Name: "v", Participants: []EntityRef{{Ref: "nobody"}}}}},
		"entities[0].aliases[1]":        {Entities: []EntityInput{{Name: "x", Aliases: []string{"fine", strings.Repeat("a", 1025)}}}},
		"entities[0].aliases[0]":        {Entities: []EntityInput{{Name: "x", Aliases: []string{"a\x00b"}}}},
		"entities[0].attributes":        {Entities: []EntityInput{{Name: "x", Attributes: map[string][]string{"": {"v"}}}}},
		"entities[0].summary":           {Entities: []EntityInput{{Name: "x", Summary: "\xff"}}},
		"relations[0].reason":           {Relations: []RelationInput{{Subject: EntityRef{ID: id}, Predicate: "p", Object: EntityRef{ID: id}, Reason: strings.Repeat("x", MaxTextBytes+1)}}},
		"events[0].evidence[0].source":  {Events: []EventInput{{Name: "v", RecordInput: RecordInput{Evidence: []Evidence{{}}}}}},
		"relations[0].position":         {Relations: []RelationInput{{RecordInput: RecordInput{Position: new(int64(1))}, Subject: EntityRef{ID: id}, Predicate: "p", Object: EntityRef{ID: id}}}},
		"entities[0].namespace":         {Entities: []EntityInput{{Name: "x", RecordInput: RecordInput{Namespace: new(" x")}}}},
		"events[0].updated_at_us":       {Events: []EventInput{{Name: "v", RecordInput: RecordInput{CreatedAtUS: new(int64(20)), UpdatedAtUS: new(int64(10))}}}},
		"entities[0].scope":             {Entities: []EntityInput{{Name: "x", RecordInput: RecordInput{Scope: new(strings.Repeat("s", 1025))}}}},
		"entities[0].attributes ":       {Entities: []EntityInput{{Name: "x", Attributes: map[string][]string{"k": {strings.Repeat("x", MaxTextBytes)}}}}},
		"":                              {Entities: make([]EntityInput, MaxBatch), Events: make([]EventInput, 1)},
		"relations[0].predicate":        {Relations: []RelationInput{relates(id, strings.Repeat("x", MaxLabelBytes+1), id)}},
		"entities[0].name":              {Entities: []EntityInput{{RecordInput: RecordInput{ID: id}}}},
		"entities[0].tags":              {Entities: []EntityInput{{Name: "x", RecordInput: RecordInput{Tags: manyTags(257)}}}},
		"entities[0].aliases":           {Entities: []EntityInput{{Name: "x", Aliases: manyTags(257)}}},
	} {
		refuses(t, db, ErrValidation, strings.TrimSpace(field), b)
	}
	refuses(t, db, ErrValidation, "entities[0].match", GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: id}, Name: "x", Match: MatchByName}}})
	// An empty batch is none.
	before := stateOf(t, db)
	r := must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{}))
	if r.Value.Entities == nil || r.Value.Relations == nil || r.Value.Events == nil || r.Revision != before.revision {
		t.Errorf("%+v", r)
	}
	equal(t, stateOf(t, db), before)
}

func manyTags(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint("t", i))
	}
	return tags
}

func TestGraphMatch(t *testing.T) {
	db := openGraphDB(t, t.TempDir())
	b := GraphBatch{
		Entities: []EntityInput{
			{Ref: "a", Name: "Ada Lovelace", Match: MatchByName, EntityType: new("person"), Aliases: []string{"Ada"},
				Attributes: map[string][]string{"born": {"1815"}}, Summary: "wrote programs",
				RecordInput: RecordInput{Tags: []string{"x"}, Evidence: []Evidence{{Source: "one"}}, Metadata: Metadata(`{"a":1}`)}},
			{Ref: "e", Name: "Engine", Match: MatchByName},
		},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "a"}, Predicate: "programs", Object: EntityRef{Ref: "e"}}},
		Events:    []EventInput{{Name: "Lecture", Participants: []EntityRef{{Ref: "a"}}}},
	}
	first := apply(t, db, b)
	records := stateOf(t, db).records
	second := apply(t, db, b)
	equal(t, stateOf(t, db).records, records)
	equal(t, second.Entities[0].ID, first.Entities[0].ID)
	equal(t, second.Entities[0].Evidence, first.Entities[0].Evidence)

	more := apply(t, db, GraphBatch{Entities: []EntityInput{{Name: "ａda   LOVELACE", Match: MatchByName, EntityType: new("person"),
		Aliases: []string{"Countess"}, Attributes: map[string][]string{"born": {"London", "1815"}, "died": {"1852"}},
		RecordInput: RecordInput{Tags: []string{"y"}, Evidence: []Evidence{{Source: "two"}}, Metadata: Metadata(`{"b":2}`)}}}}).Entities[0]
	equal(t, more.ID, first.Entities[0].ID)
	equal(t, more.Name, "Ada Lovelace")
	equal(t, more.Aliases, []string{"ada", "countess"})
	equal(t, more.Attributes, map[string][]string{"born": {"1815", "London"}, "died": {"1852"}})
	equal(t, more.Summary, "wrote programs")
	equal(t, more.Tags, []string{"x", "y"})
	equal(t, len(more.Evidence), 2)
	equal(t, more.Metadata.String(), `{"a":1,"b":2}`)
	equal(t, getRelation(t, db, first.Relations[0].ID, ReadFilter{}).Revision, second.Relations[0].Revision)

	// Another type, scope or namespace is another entity; an alias is no name.
	for _, in := range []EntityInput{
		{Name: "Engine", EntityType: new("machine")}, {Name: "Engine", RecordInput: RecordInput{Scope: new("private")}},
		{Name: "Engine", RecordInput: RecordInput{Namespace: new("other")}}, {Name: "Countess", EntityType: new("person")},
	} {
		in.Match = MatchByName
		before := stateOf(t, db).records
		apply(t, db, GraphBatch{Entities: []EntityInput{in}})
		equal(t, stateOf(t, db).records, before+1)
	}
	// Without the match the name may come again, and then it names several.
	apply(t, db, GraphBatch{Entities: []EntityInput{{Name: "engine"}}})
	refuses(t, db, ErrConflict, "entities[0].name", GraphBatch{Entities: []EntityInput{{Name: "Engine", Match: MatchByName}}})
	// Twice in one batch it is one.
	twice := apply(t, db, GraphBatch{Entities: []EntityInput{{Name: "Babbage", Match: MatchByName}, {Name: "babbage", Match: MatchByName, Summary: "s"}}})
	equal(t, twice.Entities[0], twice.Entities[1])
}

func TestGraphRevisions(t *testing.T) { // R2, R10, R12 for the graph
	db := openGraphDB(t, t.TempDir())
	id := entities(t, db, "a")[0]
	r := relate(t, db, relates(id, "p", id))[0]
	v := happen(t, db, happens("v", id))[0]
	with := func(in RecordInput) []GraphBatch {
		e, x, h := EntityInput{RecordInput: in, Name: "a"}, relates(id, "p", id), happens("v", id)
		x.RecordInput, h.RecordInput = in, in
		if in.ID != 0 {
			x.ID, h.ID = r, v
		}
		return []GraphBatch{{Entities: []EntityInput{e}}, {Relations: []RelationInput{x}}, {Events: []EventInput{h}}}
	}
	for i, b := range with(RecordInput{ID: id, ExpectedRevision: new(int64(77))}) {
		refuses(t, db, ErrStaleRevision, []string{"entities", "relations", "events"}[i]+"[0].expected_revision", b)
	}
	refuses(t, db, ErrStaleRevision, "", GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ExpectedRevision: new(int64(0))}, Name: "new"}}})
	for i, b := range with(RecordInput{ID: id, ExpectedRevision: new(int64(1)), CreatedAtUS: new(int64(9))})[:1] {
		before := getEntity(t, db, id, ReadFilter{})
		after := apply(t, db, b).Entities[i]
		if after.CreatedAtUS != before.CreatedAtUS || after.Revision <= before.Revision {
			t.Errorf("%+v", after)
		}
	}
	for _, b := range []GraphBatch{
		{Entities: []EntityInput{{RecordInput: RecordInput{ID: 777}, Name: "a"}}},
		{Entities: []EntityInput{{RecordInput: RecordInput{ID: r}, Name: "a"}}},
		{Entities: []EntityInput{{RecordInput: RecordInput{ID: id, Namespace: new("other")}, Name: "a"}}},
		{Relations: []RelationInput{{RecordInput: RecordInput{ID: v}, Subject: EntityRef{ID: id}, Predicate: "p", Object: EntityRef{ID: id}}}},
		{Events: []EventInput{{RecordInput: RecordInput{ID: id}, Name: "v"}}},
	} {
		refuses(t, db, ErrNotFound, "", b)
	}
}

func TestGraphConcurrency(t *testing.T) {
	db := openGraphDB(t, t.TempDir())
	const writers, rounds = 4, 25
	batch := func(i int) GraphBatch {
		return GraphBatch{
			Entities: []EntityInput{{Ref: "h", Name: "hub", Match: MatchByName}, {Ref: "x", Name: fmt.Sprint("leaf", i%10), Match: MatchByName}},
			Relations: []RelationInput{{Subject: EntityRef{Ref: "h"}, Predicate: "has", Object: EntityRef{Ref: "x"},
				RecordInput: RecordInput{Evidence: []Evidence{{Source: fmt.Sprint("s", i)}}}}},
			Events: []EventInput{{Name: fmt.Sprint("event", i), Participants: []EntityRef{{Ref: "h"}, {Ref: "x"}}}},
		}
	}
	apply(t, db, batch(0))
	hub := resolved(t, db, "hub", ReadFilter{})[0]
	ctx, cancel := context.WithCancel(t.Context())
	var readers, group sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				n, err := db.Graph().Neighbors(ctx, hub, ReadFilter{}, nil)
				if err == nil && len(n.Entities) != len(n.Relations) {
					t.Error("half a batch: ", len(n.Entities), len(n.Relations))
				}
				if err == nil {
					_, err = db.Search(ctx, SearchRequest{Query: "hub"})
				}
				if err != nil && !errors.Is(err, ErrCanceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				if _, err := db.Graph().ApplyBatch(t.Context(), batch(w*rounds+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	cancel()
	readers.Wait()
	equal(t, []int{listed(t, db, KindEntity, ReadFilter{}), listed(t, db, KindRelation, ReadFilter{}), listed(t, db, KindEvent, ReadFilter{})},
		[]int{11, 10, writers * rounds})
	sources := 0
	for _, r := range must[*Neighborhood](t)(db.Graph().Neighbors(t.Context(), hub, ReadFilter{}, nil)).Relations {
		sources += len(r.Evidence)
	}
	equal(t, sources, writers*rounds)
	check := must[*HealthReport](t)(db.DeepHealth(t.Context()))
	if check.Integrity != "ok" || check.ForeignKeyErrors != 0 {
		t.Errorf("%+v", check)
	}
}

// What many sources name must stay writable: the oldest evidence makes room.
func TestGraphEvidenceLimit(t *testing.T) {
	db := openGraphDB(t, t.TempDir())
	source := func(i int) Evidence { return Evidence{Source: fmt.Sprint("source ", i)} }
	var all []Evidence
	for i := range MaxEvidence - 1 {
		all = append(all, source(i))
	}
	write := func(evidence ...Evidence) GraphBatchResult {
		in := RecordInput{Evidence: evidence}
		return apply(t, db, GraphBatch{
			Entities:  []EntityInput{{RecordInput: in, Ref: "a", Name: "a", Match: MatchByName}},
			Relations: []RelationInput{{RecordInput: in, Subject: EntityRef{Ref: "a"}, Predicate: "p", Object: EntityRef{Ref: "a"}}},
			Events:    []EventInput{{RecordInput: in, Name: "v", Participants: []EntityRef{{Ref: "a"}}}},
		})
	}
	write(all...)
	out := write(source(3), source(1000), source(1001))
	want := append(all[1:], source(1000), source(1001))
	equal(t, out.Entities[0].Evidence, want)
	equal(t, out.Relations[0].Evidence, want)
	equal(t, out.Events[0].Evidence, want)
}

// The journal brings an index up that never saw the writes.
func TestGraphReplay(t *testing.T) {
	dir := t.TempDir()
	db := openTestDB(t, dir)
	ids := entities(t, db, "alder", "birch", "cedar")
	relate(t, db, relates(ids[0], "near", ids[1]), relates(ids[1], "near", ids[2]))
	happen(t, db, happens("flood", ids[0], ids[2]), happens("fire", ids[1]))
	apply(t, db, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: ids[0]}, Name: "dogwood"}}})
	must[*Receipt[int64]](t)(db.Graph().DeleteByFilter(t.Context(), DeleteRequest{Filter: ReadFilter{Kinds: []Kind{KindEvent}}}))
	queries := []string{"alder", "dogwood", "birch", "near", "flood"}
	var before [][]string
	for _, q := range queries {
		before = append(before, hitKeys(t, db, q))
	}
	if len(before[0]) != 0 || len(before[1]) != 2 || len(before[3]) != 2 || len(before[4]) != 0 {
		t.Error(before)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTestDB(t, dir)
	for i, q := range queries {
		equal(t, hitKeys(t, db, q), before[i])
	}
}
