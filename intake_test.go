package loci

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/mark"
)

func intakeDB(t testing.TB) *DB {
	t.Helper()
	db, err := Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func takeIn(t testing.TB, db *DB, req IntakeRequest) *Receipt[IntakeReport] {
	t.Helper()
	r, err := db.Intake(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestIntake(t *testing.T) {
	db := intakeDB(t)
	known, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: "Lamps are lit at seven."})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Graph().ApplyBatch(t.Context(), GraphBatch{Entities: []EntityInput{
		{Name: "Ada", EntityType: new("person")}, {Name: "Lamp", EntityType: new("a")}, {Name: "lamp", EntityType: new("b")},
	}}); err != nil {
		t.Fatal(err)
	}
	req := IntakeRequest{
		Source: "log of 1 May",
		Judgments: []IntakeJudgment{
			{Text: "The tide table is updated weekly.", Tags: []string{"Harbour"}, Reasoning: "Seen."},
			{Text: "lamps ARE lit at seven."},
			{Text: "the TIDE table is updated weekly.", Evidence: []Evidence{{Source: "wall"}}},
			{Text: " "},
			{Text: mark.Wrap("The tide table is updated weekly.")},
			{Text: mark.Wrap("x") + "\n潮水表每周更新", Type: new("event")},
			{Text: "bad", Type: new("")},
		},
		Triples: []IntakeTriple{
			{Subject: "ada", Predicate: "repairs ", Object: " Pump"},
			{Subject: "Ada", Predicate: "Repairs", Object: "pump", Confidence: new(0.9)},
			{Subject: "Ada", Predicate: "lights", Object: "Lamp"},
			{Subject: "Ada", Predicate: "lights", Object: "Lamp", ObjectType: new("b")},
			{Subject: "", Predicate: "lights", Object: "Lamp"},
			{Subject: "Ada", Predicate: "lights", Object: "Pump", Confidence: new(2.0)},
			{Subject: "Eve", Predicate: "knows", Object: "Eve"},
		},
	}
	dry := req
	dry.DryRun = true
	before, err := db.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	would := takeIn(t, db, dry)
	after, err := db.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before.Revision != after.Revision || before.RecordCount != after.RecordCount || would.Revision != after.Revision || !would.Value.DryRun {
		t.Errorf("a dry run wrote: %+v, %+v, %+v", before, after, would)
	}
	got := takeIn(t, db, req)
	created := map[string]string{}
	for _, s := range got.Value.Stored {
		created[fmt.Sprint(s.List, " ", s.Index)] = fmt.Sprint(s.Created)
		if s.ID == 0 {
			t.Errorf("%+v has no id", s)
		}
	}
	wantStored := map[string]string{
		"judgments 0": "true", "judgments 1": "false", "judgments 2": "false", "judgments 5": "true",
		"triples 0": "true", "triples 1": "false", "triples 3": "true", "triples 6": "true",
	}
	if !reflect.DeepEqual(created, wantStored) {
		t.Errorf("stored %v, want %v", created, wantStored)
	}
	rejected := map[string]string{}
	for _, r := range got.Value.Rejected {
		rejected[fmt.Sprint(r.List, " ", r.Index, " ", r.Field)] = r.Reason
	}
	for at, part := range map[string]string{
		"judgments 3 text": "blank", "judgments 4 text": "recalled", "judgments 6 type": "empty",
		"triples 2 ": "say its object_type", "triples 4 subject": "empty", "triples 5 confidence": "0",
	} {
		if !strings.Contains(rejected[at], part) {
			t.Errorf("%s: %q does not say %q; all: %v", at, rejected[at], part, rejected)
		}
	}
	if v := got.Value; v.Created != 5 || v.Merged != 3 || v.Entities != 2 || len(v.Rejected) != 6 {
		t.Errorf("%+v", v)
	}
	if w := would.Value; w.Created != 5 || w.Merged != 3 || w.Entities != 2 || !reflect.DeepEqual(w.Rejected, got.Value.Rejected) {
		t.Errorf("the dry run said %+v, and it became %+v", w, got.Value)
	}
	m, err := db.Memories().Get(t.Context(), got.Value.Stored[0].ID, ReadFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Judgment != "the TIDE table is updated weekly." || m.Reasoning != "Seen." || len(m.Evidence) != 2 || m.Tags[0] != "harbour" {
		t.Errorf("%+v", m)
	}
	if got.Value.Stored[1].ID != known.Value.ID {
		t.Errorf("merged with %d, not %d", got.Value.Stored[1].ID, known.Value.ID)
	}
	// Again: everything is known.
	again := takeIn(t, db, req)
	if v := again.Value; v.Created != 0 || v.Merged != 8 || v.Entities != 0 || len(v.Rejected) != 6 {
		t.Errorf("again: %+v", v)
	}
}

func TestIntakeRefused(t *testing.T) {
	db := intakeDB(t)
	for _, c := range []struct {
		req   IntakeRequest
		code  Code
		field string
	}{
		{IntakeRequest{Namespace: new("")}, ErrValidation, "namespace"},
		{IntakeRequest{Scope: new(" x")}, ErrValidation, "scope"},
		{IntakeRequest{Source: strings.Repeat("x", MaxTextBytes+1)}, ErrValidation, "source"},
		{IntakeRequest{Judgments: make([]IntakeJudgment, MaxIntake), Triples: make([]IntakeTriple, 1)}, ErrValidation, ""},
	} {
		_, err := db.Intake(t.Context(), c.req)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Code != c.code || e.Field != c.field || e.Op != "intake" {
			t.Errorf("%+v: %v", c.field, err)
		}
	}
	tenant := WithAccess(t.Context(), &Access{Grants: []Grant{{Namespace: "a", Scopes: []string{"public"}, Write: true}, {Namespace: "b", Scopes: []string{"public"}}}})
	req := IntakeRequest{Namespace: new("b"), Judgments: []IntakeJudgment{{Text: "x"}}}
	if _, err := db.Intake(tenant, req); !errors.Is(err, ErrForbidden) {
		t.Errorf("a place that may only be read: %v", err)
	}
	req.Namespace = new("a")
	if _, err := db.Intake(tenant, req); err != nil {
		t.Error(err)
	}
	empty := takeIn(t, db, IntakeRequest{})
	if empty.Value.Stored == nil || empty.Value.Rejected == nil || len(empty.Value.Stored)+len(empty.Value.Rejected) != 0 {
		t.Errorf("%+v", empty)
	}
}

func TestIntakeRedacts(t *testing.T) {
	db := intakeDB(t)
	const key = "AKIA" + "Z7Q4M2XK9W3RT5VB" // in two pieces, or scanners would find it here
	r, err := db.Intake(WithRedaction(t.Context()), IntakeRequest{
		Judgments: []IntakeJudgment{{Text: "The key is " + key + "."}},
		Triples:   []IntakeTriple{{Subject: "Ada", Predicate: "uses", Object: "the API", Reason: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Redacted) != 1 || r.Redacted[0].Count != 2 || r.Value.Created != 2 {
		t.Errorf("%+v", r)
	}
}

// TestIntakeModel: of everything there is one word what became of it, the counts
// agree with the lists, and taking it in again makes nothing.
func TestIntakeModel(t *testing.T) {
	db := intakeDB(t)
	word := rapid.SampledFrom([]string{"", " ", "a", "A", "b", "c d", "潮", mark.Wrap("a")})
	namespaces := 0
	rapid.Check(t, func(t *rapid.T) {
		namespaces++
		req := IntakeRequest{Namespace: new(fmt.Sprintf("n%d", namespaces))}
		judgments, triples := map[string]bool{}, map[string]bool{}
		for range rapid.IntRange(0, 8).Draw(t, "judgments") {
			w := word.Draw(t, "text")
			req.Judgments = append(req.Judgments, IntakeJudgment{Text: w})
			if w = normalize(mark.Strip(w)); w != "" {
				judgments[w] = true
			}
		}
		for range rapid.IntRange(0, 8).Draw(t, "triples") {
			s, p, o := word.Draw(t, "subject"), word.Draw(t, "predicate"), word.Draw(t, "object")
			req.Triples = append(req.Triples, IntakeTriple{Subject: s, Predicate: p, Object: o})
			s, p, o = normalize(mark.Strip(s)), normalize(mark.Strip(p)), normalize(mark.Strip(o))
			if s != "" && p != "" && o != "" {
				triples[s+"|"+p+"|"+o] = true
			}
		}
		for round := range 2 {
			r, err := db.Intake(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			created := 0
			for _, s := range r.Value.Stored {
				seen[fmt.Sprint(s.List, s.Index)] = true
				if s.Created {
					created++
				}
			}
			for _, s := range r.Value.Rejected {
				seen[fmt.Sprint(s.List, s.Index)] = true
			}
			if all := len(req.Judgments) + len(req.Triples); len(seen) != all || len(r.Value.Stored)+len(r.Value.Rejected) != all {
				t.Fatalf("%d of %d have an outcome: %+v", len(seen), all, r.Value)
			}
			want := len(judgments) + len(triples)
			if round == 1 {
				want = 0
			}
			if created != want || r.Value.Created != created || r.Value.Merged != len(r.Value.Stored)-created {
				t.Fatalf("round %d: %d created, want %d: %+v", round, created, want, r.Value)
			}
		}
	})
}
