package agent

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/agentfile"
)

// disturbWhole does something at random to a memory. What is refused changes nothing.
// The clock goes on by less than passes.
func disturbWhole(t *testing.T, m *testMemory, random *rand.Rand, passes int64) {
	t.Helper()
	ctx := t.Context()
	id := func() loci.PointID { return []loci.PointID{0, 1, 2, 3, 1 << 63, greatestID}[random.IntN(6)] }
	in := func() PointInput {
		p := PointInput{ID: id(), Embedding: [][]float32{x(), y(), d(), {-3, 0.5, 2, 1}}[random.IntN(4)]}
		if random.IntN(3) == 0 {
			p.TTLSeconds = new([]uint64{1, 50, 1 << 40, math.MaxUint64}[random.IntN(4)])
		}
		if random.IntN(2) == 0 {
			p.Metadata, p.Tags = loci.Metadata(fmt.Sprintf(`{"n":%d.0,"灯":["a"]}`, random.IntN(5))), []string{"nova", "港"}
		}
		if random.IntN(3) == 0 {
			p.Thread = new("talk")
			if random.IntN(2) == 0 {
				p.Position = new(random.Int64N(4))
			}
		}
		return p
	}
	kinds := wholeKinds(m.AgentMemory)
	s := kinds[random.IntN(3)]
	var err error
	switch random.IntN(14) {
	case 0, 1, 2:
		f := FactInput{PointInput: in(), Content: fmt.Sprint("tide ", random.IntN(9))}
		if random.IntN(3) == 0 {
			f.ValidFromUS, f.ValidToUS = new(T-random.Int64N(day)), new(T+random.Int64N(day))
		}
		_, err = m.facts.Put(ctx, f)
	case 3, 4:
		e := EpisodeInput{PointInput: in(), Description: fmt.Sprint("lighthouse ", random.IntN(9)), AtUS: new(T - random.Int64N(3*day))}
		if random.IntN(3) == 0 {
			e.Embedding = nil
		}
		_, err = m.episodes.Record(ctx, e)
	case 5, 6:
		_, err = m.procedures.Learn(ctx, ProcedureInput{PointInput: in(), Name: "p", Steps: []string{"tide", fmt.Sprint(random.IntN(9))}})
	case 7, 8, 9:
		to := kinds[random.IntN(3)]
		_, err = s.Relate(ctx, RelateRequest{
			From: id(), Type: []string{"a", "b", "属于"}[random.IntN(3)], ToKind: to.Kind(), To: id(), Properties: loci.Metadata(fmt.Sprintf(`{"w":%d}`, random.IntN(3))),
		})
	case 10:
		_, err = m.facts.Supersede(ctx, SupersedeRequest{Old: id(), New: id(), FromUS: new(T + random.Int64N(1000))})
	case 11:
		_, err = m.procedures.Reinforce(ctx, id(), random.IntN(2) == 0)
	case 12:
		_, err = s.UpdateMetadata(ctx, UpdateRequest{ID: id(), Updates: loci.Metadata(fmt.Sprintf(`{"u":%d}`, random.IntN(3)))})
	case 13:
		_, err = s.Delete(ctx, id())
		m.clock.Set(m.clock.at + random.Int64N(passes+1))
	}
	if err != nil && !errors.Is(err, loci.ErrNotFound) && !errors.Is(err, loci.ErrConflict) && !errors.Is(err, loci.ErrValidation) {
		t.Fatal(err)
	}
}

// TestRandomWholes holds, for memories made at random, that a snapshot and the files of
// the kinds bring back all that could be seen, whatever happened in between, and leave
// the store sound. // Z1, Z5, N1
func TestRandomWholes(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 4
	}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 17))
		m := openMemory(t, 4)
		for range 80 {
			disturbWhole(t, m, random, 2*second)
		}
		before := whole(t, m.AgentMemory)
		takeSnapshot(t, m.AgentMemory)
		var files [3][]byte
		for i, s := range wholeKinds(m.AgentMemory) {
			files[i] = serialized(t, s)
		}
		for range 40 {
			disturbWhole(t, m, random, 0)
		}
		restoreVersion(t, m.AgentMemory, 1)
		wantWhole(t, fmt.Sprintf("seed %d, snapshot", seed), m.AgentMemory, before)
		m.deepCheck()
		for _, i := range random.Perm(3) {
			s := wholeKinds(m.AgentMemory)[i]
			if random.IntN(2) == 0 {
				must[*loci.Receipt[int64]](t)(s.Clear(t.Context()))
			}
			out := deserialize(t, s, files[i])
			wantWhole(t, fmt.Sprintf("seed %d, %s: %+v", seed, s.noun, out), m.AgentMemory, before)
		}
		m.deepCheck()
		m.sweep()
		m.deepCheck()
		if t.Failed() {
			t.FailNow()
		}
		m.db.Close()
	}
}

// FuzzDeserialize makes files of points that keep to the format and hold anything
// else: what is taken leaves the store sound and is written out the same, and what is
// not is ErrValidation.
func FuzzDeserialize(f *testing.F) {
	f.Add(uint8(0), uint64(1), "name", "content", []byte(`{"a":1}`), []byte(`{"steps":["s"]}`), "tag", "thread", int64(1), T, T, int64(0), int64(1), int64(2), 0.5, int64(3))
	f.Add(uint8(1), uint64(0), "", "c", []byte(nil), []byte(nil), "", "", int64(0), T, T, T+1, int64(0), int64(0), 0.0, int64(1))
	f.Add(uint8(2), uint64(1<<63), "p", "s", []byte(nil), []byte(`{"steps":["s"]}`), "", "t", int64(-1), int64(0), int64(-1), int64(0), int64(0), int64(0), 1.0, int64(9))
	m := openMemory(f, 4)
	f.Fuzz(func(t *testing.T, kind uint8, key uint64, title, content string, metadata, data []byte, tag, thread string, position, created, recorded, expires,
		from, to int64, confidence float64, version int64) {
		s := wholeKinds(m.AgentMemory)[kind%3]
		p := agentfile.Point{
			Kind: kindName(s.kind), Key: key, Title: title, Content: content, Metadata: metadata, Data: data, Thread: thread,
			Created: created, Updated: created, Recorded: recorded, Confidence: confidence, Version: version, Vector: d(),
		}
		if tag != "" {
			p.Tags = []string{tag}
		}
		optional := func(v int64) *int64 {
			if v == 0 {
				return nil
			}
			return &v
		}
		p.Position, p.ExpiresAt, p.ValidFrom, p.ValidTo = optional(position), optional(expires), optional(from), optional(to)
		if kind >= 128 || s.kind == wholeKinds(m.AgentMemory)[1].kind {
			p.HappenedAt = &created
		}
		var b bytes.Buffer
		w, err := agentfile.NewWriter(&b, &agentfile.Header{Dimension: 4, Space: m.Space(), Kinds: []string{p.Kind}})
		if err != nil {
			t.Fatal(err)
		}
		if w.Point(&p) != nil {
			return
		}
		err = w.Version(&agentfile.PointVersion{
			Kind: p.Kind, Key: key, Version: version - 1, RecordedAt: recorded, RecordedTo: recorded, Title: title, Content: content, Metadata: metadata, Data: data,
		})
		if err == nil {
			err = w.Edge(&agentfile.Edge{FromKind: p.Kind, From: key, Type: title, ToKind: p.Kind, To: key, ID: key, Properties: metadata})
		}
		if err != nil {
			return
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out, err := s.Deserialize(t.Context(), bytes.NewReader(b.Bytes()))
		if err != nil {
			wantCode(t, err, loci.ErrValidation)
			return
		}
		h, err := m.db.DeepHealth(t.Context())
		if err != nil || h.Integrity != "ok" {
			t.Fatalf("%+v %v", h, err)
		}
		if out.Value.Expired == 0 {
			again := serialized(t, s)
			got, want := records(t, again), records(t, b.Bytes())
			if !slices.Equal(got, want) {
				t.Errorf("%s\nbecame\n%s", want, got)
			}
		}
	})
}

// records are the records of a file as JSON.
func records(t *testing.T, file []byte) (out []string) {
	r, err := agentfile.NewReader(bytes.NewReader(file))
	for err == nil {
		var record any
		if record, err = r.Next(); err == nil {
			out = append(out, asJSON(t, record))
		}
	}
	return out
}
