package agent

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// procedure is an input.
func procedure(id loci.PointID, name string, steps []string, with ...func(*ProcedureInput)) ProcedureInput {
	in := ProcedureInput{PointInput: PointInput{ID: id}, Name: name, Steps: steps}
	for _, f := range with {
		f(&in)
	}
	return in
}

func trusted(confidence float64) func(*ProcedureInput) {
	return func(in *ProcedureInput) { in.Confidence = &confidence }
}

func shaped(v []float32) func(*ProcedureInput) { return func(in *ProcedureInput) { in.Embedding = v } }

// learnProcedure learns a procedure and gives what became of it.
func (m *testMemory) learnProcedure(id loci.PointID, name string, steps []string, with ...func(*ProcedureInput)) Stored {
	m.t.Helper()
	return must[*loci.Receipt[Stored]](m.t)(m.procedures.Learn(m.t.Context(), procedure(id, name, steps, with...))).Value
}

// procedure gives a live procedure, or nil.
func (m *testMemory) procedure(id loci.PointID) *loci.Procedure {
	m.t.Helper()
	return must[*Found[loci.Procedure]](m.t)(m.procedures.Get(m.t.Context(), GetRequest{ID: id})).Point
}

// reinforce counts uses.
func (m *testMemory) reinforce(id loci.PointID, success bool, times int) (out Reinforced) {
	m.t.Helper()
	for range times {
		out = must[*loci.Receipt[Reinforced]](m.t)(m.procedures.Reinforce(m.t.Context(), id, success)).Value
	}
	return out
}

// served is how a procedure has served.
type served struct {
	confidence      float64
	uses, successes int64
	last            int64 // 0: never
}

// served tells how a live procedure has served.
func (m *testMemory) served(id loci.PointID) served {
	m.t.Helper()
	if p := m.procedure(id); p != nil {
		return served{p.Confidence, p.Uses, p.Successes, valueOr(p.LastUsedUS, 0)}
	}
	m.t.Fatalf("there is no procedure %d", id)
	return served{}
}

func wantServed(t testing.TB, what string, got, want served) {
	t.Helper()
	if math.Abs(got.confidence-want.confidence) > 1e-9 || got.uses != want.uses || got.successes != want.successes || got.last != want.last {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func TestLearn(t *testing.T) { // P1
	m := openMemory(t, 4)
	if got := m.learnProcedure(1, "deploy", []string{"build", "ship", "build"}); got.Vector != VectorNone || got.Version != 1 {
		t.Errorf("receipt %+v", got)
	}
	p := m.procedure(1)
	if p.Name != "deploy" || !slices.Equal(p.Steps, []string{"build", "ship", "build"}) || p.LastUsedUS != nil {
		t.Errorf("%+v", p)
	}
	wantServed(t, "new", m.served(1), served{confidence: 0.5})
	odd := []string{"two\nlines", " padded ", `"quotes" <b>`, "步骤"}
	m.learnProcedure(2, "部署", odd, trusted(0))
	m.learnProcedure(3, "certain", make1000(), trusted(1))
	if p := m.procedure(2); !slices.Equal(p.Steps, odd) || p.Name != "部署" {
		t.Errorf("%+v", p)
	}
	wantServed(t, "0 is not taken for absent", m.served(2), served{})
	wantServed(t, "certain", m.served(3), served{confidence: 1})
	m.reopen()
	if p := m.procedure(2); !slices.Equal(p.Steps, odd) {
		t.Errorf("after a reopen %+v", p)
	}

	before := m.revision()
	for name, c := range map[string]struct {
		in    ProcedureInput
		field string
	}{
		"no steps":       {procedure(1, "a", nil), "steps"},
		"too many steps": {procedure(1, "a", append(make1000(), "one more")), "steps"},
		"blank step":     {procedure(1, "a", []string{"b", " \t"}), "steps[1]"},
		"no text":        {procedure(1, "a", []string{"\xff"}), "steps[0]"},
		"too long":       {procedure(1, "a", []string{strings.Repeat("b", 1<<19), strings.Repeat("c", 1<<19)}), "steps"},
		"no name":        {procedure(1, "", []string{"b"}), "name"},
		"blank name":     {procedure(1, " ", []string{"b"}), "name"},
		"below 0":        {procedure(1, "a", []string{"b"}, trusted(-0.1)), "confidence"},
		"above 1":        {procedure(1, "a", []string{"b"}, trusted(1.1)), "confidence"},
		"no number":      {procedure(1, "a", []string{"b"}, trusted(math.NaN())), "confidence"},
	} {
		_, err := m.procedures.Learn(t.Context(), c.in)
		t.Run(name, func(t *testing.T) { wantField(t, err, loci.ErrValidation, c.field) })
	}
	_, err := m.procedures.Learn(t.Context(), procedure(1, "a", []string{"b"}, shaped([]float32{1, 2, 3}))) // V1
	wantField(t, err, loci.ErrInvalidVector, "embedding")
	if m.revision() != before {
		t.Error("something was written")
	}
	m.deepCheck()
}

// make1000 are as many steps as there may be.
func make1000() []string {
	steps := make([]string, MaxSteps)
	for i := range steps {
		steps[i] = "step"
	}
	return steps
}

func TestLearnAgain(t *testing.T) { // P2
	m := openMemory(t, 4)
	m.learnProcedure(1, "deploy", []string{"build"}, trusted(0.4))
	m.reinforce(1, true, 3)
	wantServed(t, "used", m.served(1), served{0.7, 3, 3, T})
	m.clock.Set(T + second)
	if got := m.learnProcedure(1, "deploy", []string{"build", "ship"}); got.Version != 2 {
		t.Errorf("receipt %+v", got)
	}
	if p := m.procedure(1); !slices.Equal(p.Steps, []string{"build", "ship"}) {
		t.Errorf("%+v", p)
	}
	wantServed(t, "again", m.served(1), served{0.7, 3, 3, T})
	m.learnProcedure(1, "deploy", []string{"build"}, trusted(0))
	wantServed(t, "with a confidence", m.served(1), served{0, 3, 3, T})
	m.learnProcedure(1, "deploy", []string{"build"}, func(in *ProcedureInput) { in.Reset = true })
	wantServed(t, "reset", m.served(1), served{confidence: 0.5})
	m.learnProcedure(1, "deploy", []string{"build"}, trusted(0.9), func(in *ProcedureInput) { in.Reset, in.TTLSeconds = true, new(uint64(5)) })
	wantServed(t, "reset with a confidence", m.served(1), served{confidence: 0.9})
	m.reinforce(1, false, 1)
	m.clock.Set(T + 6*second)
	m.learnProcedure(1, "deploy", []string{"build"})
	wantServed(t, "expired and learned again", m.served(1), served{confidence: 0.5})
	if p := m.procedure(1); p.Version != 1 {
		t.Errorf("version %d of a new procedure", p.Version)
	}
}

func TestReinforce(t *testing.T) { // P3, P4, P5, P6
	m := openMemory(t, 4)
	m.learnProcedure(1, "deploy", []string{"build"})
	got := must[*loci.Receipt[Reinforced]](t)(m.procedures.Reinforce(t.Context(), 1, true))
	if got.Value.ID != 1 || !near(got.Value.Confidence, 0.6) || got.Value.Uses != 1 || got.Value.Successes != 1 || got.Value.LastUsedUS != T {
		t.Errorf("%+v", got)
	}
	m.clock.Set(T + 5)
	m.reinforce(1, false, 1)
	wantServed(t, "a success, a failure", m.served(1), served{0.55, 2, 1, T + 5})
	m.learnProcedure(2, "high", []string{"a"}, trusted(0.95))
	m.learnProcedure(3, "low", []string{"a"}, trusted(0.02))
	m.reinforce(2, true, 1)
	m.reinforce(3, false, 1)
	wantServed(t, "at the top", m.served(2), served{1, 1, 1, T + 5})
	wantServed(t, "at the bottom", m.served(3), served{0, 1, 0, T + 5})

	// used makes procedure 9 one of so many uses, last used days ago; below 0 never.
	used := func(uses int64, days int64) {
		t.Helper()
		m.learnProcedure(9, "used", []string{"a"}, trusted(0.5), func(in *ProcedureInput) { in.Reset = true })
		_, err := m.procedures.change(t.Context(), "test", func(w *writer) error {
			old, err := w.required("id", 9)
			if err != nil {
				return err
			}
			p := *old
			if p.Uses = uses; days != -1 {
				p.LastUsed = new(T + 5 - days*day)
			}
			return w.tx.UpdatePoint(old, &p)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	weighted := Strategy{StrategyWeighted, map[StrategyKind]float64{StrategyFixed: 1, StrategyDiminishing: 3}}
	for _, c := range []struct {
		strategy   Strategy
		uses, days int64
		success    bool
		want       float64
	}{
		{Strategy{}, 10, 60, true, 0.6},
		{Strategy{Kind: StrategyFixed}, 10, 60, false, 0.45},
		{Strategy{Kind: StrategyDiminishing}, 0, -1, true, 0.6},
		{Strategy{Kind: StrategyDiminishing}, 10, 1, true, 0.55},
		{Strategy{Kind: StrategyDiminishing}, 10, 1, false, 0.475},
		{Strategy{Kind: StrategyTemporal}, 0, -1, true, 0.6},
		{Strategy{Kind: StrategyTemporal}, 3, 30, true, 0.55},
		{Strategy{Kind: StrategyTemporal}, 3, 30, false, 0.475},
		{Strategy{Kind: StrategyTemporal}, 3, 60, true, 0.525},
		{Strategy{Kind: StrategyTemporal}, 3, -30, true, 0.6}, // in the future
		{weighted, 10, 1, true, 0.5625},
	} {
		used(c.uses, c.days)
		must[*loci.Receipt[Reinforced]](t)(m.procedures.ReinforceWith(t.Context(), ReinforceRequest{ID: 9, Success: c.success, Strategy: c.strategy}))
		want := served{confidence: c.want, uses: c.uses + 1, last: T + 5}
		if c.success {
			want.successes = 1
		}
		wantServed(t, asJSON(t, c.strategy), m.served(9), want)
	}
}

func TestReinforceRefused(t *testing.T) { // P6, P7, Y3
	m := openMemory(t, 4)
	m.learnProcedure(1, "deploy", []string{"build"})
	before := m.revision()
	for name, s := range map[string]Strategy{
		"unknown":    {Kind: "fixd"},
		"no weights": {Kind: StrategyWeighted},
		"all 0":      {StrategyWeighted, map[StrategyKind]float64{StrategyFixed: 0}},
		"negative":   {StrategyWeighted, map[StrategyKind]float64{StrategyFixed: -1}},
		"no number":  {StrategyWeighted, map[StrategyKind]float64{StrategyFixed: math.NaN()}},
		"inside":     {StrategyWeighted, map[StrategyKind]float64{StrategyWeighted: 1, StrategyFixed: 1}},
	} {
		_, err := m.procedures.ReinforceWith(t.Context(), ReinforceRequest{ID: 1, Success: true, Strategy: s})
		t.Run(name, func(t *testing.T) { wantCode(t, err, loci.ErrValidation) })
	}
	_, err := m.procedures.ReinforceWith(t.Context(), ReinforceRequest{ID: 1, ExpectedRevision: new(before - 1)})
	wantCode(t, err, loci.ErrStaleRevision)
	_, err = m.procedures.Reinforce(t.Context(), 2, true)
	wantField(t, err, loci.ErrNotFound, "id")
	if m.revision() != before {
		t.Error("something was written")
	}
	wantServed(t, "nothing counted", m.served(1), served{confidence: 0.5})
	must[*loci.Receipt[Reinforced]](t)(m.procedures.ReinforceWith(t.Context(), ReinforceRequest{ID: 1, Success: true, ExpectedRevision: new(m.procedure(1).Revision)}))
	must[*loci.Receipt[Stored]](t)(m.procedures.SetTTL(t.Context(), TTLRequest{ID: 1, TTLSeconds: 5}))
	m.clock.Set(T + 5*second)
	_, err = m.procedures.Reinforce(t.Context(), 1, true)
	wantCode(t, err, loci.ErrNotFound)
}

// TestReinforceLeavesTheRest holds that a use changes what is known of uses, the
// revision and the time of change, and nothing else. // P7, H4
func TestReinforceLeavesTheRest(t *testing.T) {
	m := openMemory(t, 4)
	m.learnProcedure(1, "deploy", []string{"build"}, shaped(d()), func(in *ProcedureInput) {
		in.Metadata, in.Tags, in.TTLSeconds = loci.Metadata(`{"k":1}`), []string{"nova"}, new(uint64(60))
		in.Thread, in.Position = new("talk"), new(int64(3))
	})
	before, revision := m.procedure(1), m.procedure(1).Revision
	m.clock.Set(T + second)
	got := must[*loci.Receipt[Reinforced]](t)(m.procedures.Reinforce(t.Context(), 1, true))
	after := m.procedure(1)
	if after.Revision != got.Revision || after.Revision <= revision || after.UpdatedAtUS != T+second {
		t.Errorf("revision %d of %d, updated at %d", after.Revision, got.Revision, after.UpdatedAtUS)
	}
	before.Revision, before.UpdatedAtUS = after.Revision, after.UpdatedAtUS
	before.Confidence, before.Uses, before.Successes, before.LastUsedUS = after.Confidence, after.Uses, after.Successes, after.LastUsedUS
	if asJSON(t, before) != asJSON(t, after) {
		t.Errorf("%s, before %s", asJSON(t, after), asJSON(t, before))
	}
	found := must[*Found[loci.Procedure]](t)(m.procedures.Get(t.Context(), GetRequest{ID: 1, WithEmbedding: true}))
	if !slices.Equal(found.Embedding, d()) {
		t.Errorf("vector %v", found.Embedding)
	}
	wantIDs(t, "by vector", m.recall(ProcedureRecallRequest{Embedding: d()}), 1)
	wantIDs(t, "by words", m.recall(ProcedureRecallRequest{Text: "deploy"}), 1)
	err := m.procedures.m.read(t.Context(), "test", func(tx *store.ReadTx, row *store.AgentMemory) error {
		p, err := tx.PointByKey(row.Place(store.KindProcedure), 1)
		if err != nil {
			return err
		}
		versions, err := tx.PointVersions(p.ID)
		if len(versions) != 0 {
			t.Errorf("%d earlier versions", len(versions))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// What was learned of it by use stays with a change of the metadata.
	must[*loci.Receipt[Stored]](t)(m.procedures.UpdateMetadata(t.Context(), UpdateRequest{ID: 1, Updates: loci.Metadata(`{"k":2}`)}))
	p := m.procedure(1)
	if p.Uses != 1 || !near(p.Confidence, 0.6) || !slices.Equal(p.Steps, []string{"build"}) || p.Name != "deploy" || string(p.Metadata) != `{"k":2}` {
		t.Errorf("%+v", p)
	}
	m.deepCheck()
}

func TestReinforceAtOnce(t *testing.T) { // P8
	m := openMemory(t, 4)
	m.learnProcedure(1, "deploy", []string{"build"}, trusted(0))
	var all sync.WaitGroup
	use := func(id loci.PointID, success bool) {
		all.Go(func() {
			if _, err := m.procedures.Reinforce(t.Context(), id, success); err != nil {
				t.Error(err)
			}
		})
	}
	for range 8 {
		use(1, true)
	}
	all.Wait()
	wantServed(t, "8 at once", m.served(1), served{0.8, 8, 8, T})
	m.learnProcedure(2, "ship", []string{"build"})
	for i := range 64 {
		use(2, i%2 == 0)
		if i%8 == 0 {
			all.Go(func() {
				if _, err := m.procedures.Learn(t.Context(), procedure(2, "ship", []string{"build", "ship"})); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	got := m.served(2)
	if got.uses != 64 || got.successes != 32 || got.confidence < 0 || got.confidence > 1 {
		t.Errorf("%+v", got)
	}
}

func (m *testMemory) recall(req ProcedureRecallRequest) []loci.PointID {
	m.t.Helper()
	var out []loci.PointID
	for _, h := range must[*ProcedureHits](m.t)(m.procedures.Recall(m.t.Context(), req)).Hits {
		out = append(out, h.Procedure.ID)
	}
	return out
}

func TestRecall(t *testing.T) { // P9, X3, Y2
	m := openMemory(t, 4)
	wantIDs(t, "nothing", m.recall(ProcedureRecallRequest{Embedding: x()}))
	wantIDs(t, "nothing by text", m.recall(ProcedureRecallRequest{Text: "deploy"}))
	m.learnProcedure(1, "deploy", []string{"build", "ship"}, trusted(0.1), shaped(x()))
	m.learnProcedure(2, "release", []string{"deploy", "announce"}, trusted(0.6), shaped([]float32{0.9, float32(math.Sqrt(1 - 0.81)), 0, 0}))
	m.learnProcedure(3, "deploy the docs", []string{"render"}, trusted(0.7), shaped([]float32{0.8, 0.6, 0, 0}))
	hits := must[*ProcedureHits](t)(m.procedures.Recall(t.Context(), ProcedureRecallRequest{Embedding: x(), K: new(1), MinConfidence: new(0.6)})).Hits
	if len(hits) != 1 || hits[0].Procedure.ID != 2 || !near(hits[0].Score, 0.9) || hits[0].Procedure.Name != "release" || hits[0].Procedure.Confidence != 0.6 {
		t.Errorf("%+v", hits)
	}
	wantIDs(t, "none", m.recall(ProcedureRecallRequest{Embedding: x(), K: new(1)}), 1)
	wantIDs(t, "0", m.recall(ProcedureRecallRequest{Embedding: x(), MinConfidence: new(0.0)}), 1, 2, 3)
	wantIDs(t, "1", m.recall(ProcedureRecallRequest{Embedding: x(), MinConfidence: new(1.0)}))
	wantIDs(t, "approximately", m.recall(ProcedureRecallRequest{Embedding: x(), K: new(1), MinConfidence: new(0.65), Approximate: true}), 3)
	wantIDs(t, "behind the first", m.recall(ProcedureRecallRequest{Embedding: x(), Offset: 1, MinConfidence: new(0.6)}), 3)

	byText := m.recall(ProcedureRecallRequest{Text: "deploy"})
	slices.Sort(byText)
	wantIDs(t, "name and steps", byText, 1, 2, 3)
	wantIDs(t, "a step", m.recall(ProcedureRecallRequest{Text: "announce"}), 2)
	byText = m.recall(ProcedureRecallRequest{Text: "deploy", MinConfidence: new(0.6)})
	slices.Sort(byText)
	wantIDs(t, "text and least confidence", byText, 2, 3)

	for _, c := range []float64{-1, 1.5, math.NaN()} {
		for _, req := range []ProcedureRecallRequest{{Embedding: x(), MinConfidence: &c}, {Text: "deploy", MinConfidence: &c}} {
			_, err := m.procedures.Recall(t.Context(), req)
			wantField(t, err, loci.ErrValidation, "min_confidence")
		}
	}
	for name, req := range map[string]ProcedureRecallRequest{
		"neither": {}, "both": {Embedding: x(), Text: "deploy"}, "blank": {Text: " "}, "k": {Embedding: x(), K: new(0)},
	} {
		_, err := m.procedures.Recall(t.Context(), req)
		t.Run(name, func(t *testing.T) { wantCode(t, err, loci.ErrValidation) })
	}
	_, err := m.procedures.Recall(t.Context(), ProcedureRecallRequest{Embedding: []float32{1, 2, 3}})
	wantCode(t, err, loci.ErrInvalidVector)
}

// TestRecallFloorBeforeK holds that the least confidence acts before the best are
// taken, however rare what meets it is. // P9
func TestRecallFloorBeforeK(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of writes, one at a time")
	}
	m := openMemory(t, 4)
	const n = 300
	for i := range loci.PointID(n) {
		c, v := 0.1, []float32{1, float32(i) / n, 0, 0}
		if i >= n-3 {
			c = 0.9
		}
		m.learnProcedure(i, "deploy", []string{"build"}, trusted(c), shaped(v))
	}
	wantIDs(t, "by vector", m.recall(ProcedureRecallRequest{Embedding: x(), K: new(2), MinConfidence: new(0.5)}), n-3, n-2)
	byText := m.recall(ProcedureRecallRequest{Text: "deploy", K: new(10), MinConfidence: new(0.5)})
	slices.Sort(byText)
	wantIDs(t, "by text", byText, n-3, n-2, n-1)
}
