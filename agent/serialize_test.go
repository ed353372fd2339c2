package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// wholeKinds are the points of each kind of a memory.
func wholeKinds(m *AgentMemory) [3]*points {
	return [3]*points{&m.Semantic().points, &m.Episodic().points, &m.Procedural().points}
}

// whole is all that callers can see of a memory, as JSON, but for what a restore gives
// anew: record ids and revisions.
func whole(t testing.TB, m *AgentMemory) string {
	t.Helper()
	ctx := t.Context()
	all := map[string]any{"policy": must[*Policy](t)(m.Policy(ctx))}
	put := func(s *points, h *loci.PointHeader, point any) {
		h.RecordID, h.Revision = 0, 0
		at := fmt.Sprintf("%s %d", s.Kind(), h.ID)
		all[at] = point
		_, vector, err := s.get(ctx, GetRequest{ID: h.ID, WithEmbedding: true})
		if err != nil {
			t.Fatal(err)
		}
		all[at+" vector"] = vector
		all[at+" history"] = must[*Versions](t)(s.History(ctx, PointRequest{ID: h.ID})).Versions
		all[at+" relations"] = must[*Edges](t)(s.Relations(ctx, RelationsRequest{ID: h.ID, Limit: new(1000)}))
		all[at+" incoming"] = must[*Edges](t)(s.IncomingRelations(ctx, RelationsRequest{ID: h.ID, Limit: new(1000)}))
	}
	kinds := wholeKinds(m)
	for _, p := range must[*Page[loci.Fact]](t)(m.Semantic().List(ctx, ListRequest{Limit: new(1000)})).Items {
		put(kinds[0], &p.PointHeader, &p)
	}
	for _, p := range must[*Page[loci.Episode]](t)(m.Episodic().List(ctx, ListRequest{Limit: new(1000)})).Items {
		put(kinds[1], &p.PointHeader, &p)
	}
	for _, p := range must[*Page[loci.Procedure]](t)(m.Procedural().List(ctx, ListRequest{Limit: new(1000)})).Items {
		put(kinds[2], &p.PointHeader, &p)
	}
	for _, s := range kinds {
		all["count of "+s.noun] = must[*Count](t)(s.Count(ctx)).Count
	}
	if m.Dimension() == 4 {
		all["query"] = must[[]Hit](t)(m.Semantic().Query(ctx, d(), 100))
	}
	for _, text := range []string{"lighthouse", "tide"} {
		// Scores of words, and so their order, depend on what else the index holds, also
		// of what is to go.
		ids := hitIDs(must[*Hits](t)(m.Semantic().QueryText(ctx, TextRequest{Text: text, K: new(100)})).Hits)
		slices.Sort(ids)
		all["words "+text] = ids
	}
	raw, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// wantWhole fails unless a memory is as whole said.
func wantWhole(t testing.TB, what string, m *AgentMemory, want string) {
	t.Helper()
	got := whole(t, m)
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: line %d is\n%s\nwant\n%s", what, i, strings.Join(a[max(0, i-3):min(len(a), i+3)], "\n"),
				strings.Join(b[max(0, i-3):min(len(b), i+3)], "\n"))
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", what, len(a), len(b))
}

// keepEpisode, keepProcedure and join put something there.
func keepEpisode(t testing.TB, m *AgentMemory, in EpisodeInput) {
	t.Helper()
	must[*loci.Receipt[Stored]](t)(m.Episodic().Record(t.Context(), in))
}

func keepProcedure(t testing.TB, m *AgentMemory, in ProcedureInput) {
	t.Helper()
	must[*loci.Receipt[Stored]](t)(m.Procedural().Learn(t.Context(), in))
}

func join(t testing.TB, s *points, from loci.PointID, typ string, kind loci.Kind, to loci.PointID, properties string) Edge {
	t.Helper()
	return must[*loci.Receipt[Edge]](t)(s.Relate(t.Context(), RelateRequest{
		From: from, Type: typ, ToKind: kind, To: to, Properties: loci.Metadata(properties),
	})).Value
}

const greatestID = loci.PointID(1<<64 - 1)

// furnish fills a memory of dimension 4 with everything there is.
func furnish(t testing.TB, m *testMemory) {
	t.Helper()
	ctx := t.Context()
	m.store(0, "the tide", x())
	m.clock.Set(T + second)
	m.store(0, "the tide is updated weekly", d(), withMetadata(`{"a":{"b":[1,2.50]},"c":9007199254740993}`), withTags("nova", "sea"),
		withThread("talk", 3))
	m.clock.Set(T + 2*second)
	must[*loci.Receipt[Stored]](t)(m.facts.UpdateMetadata(ctx, UpdateRequest{ID: 0, Updates: loci.Metadata(`{"d":null,"e":1}`)}))
	m.store(7, "the lighthouse", []float32{3, 4, 0, 0}, withTTL(60), withValidity(new(T-day), new(T+day)))
	m.store(greatestID, "", y())
	if m.fake != nil {
		m.fake.Fail(fakeembed.Fails)
		m.store(9, "pending tide", nil)
		m.fake.Fail(fakeembed.None)
	}
	keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: 5, Embedding: x()}, Description: "power cut", AtUS: new(T - day)})
	keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: 6, TTLSeconds: new(uint64(600))}, Description: "light again", AtUS: new(int64(-1))})
	steps := []string{"build", "ship", "build"}
	keepProcedure(t, m.AgentMemory, ProcedureInput{PointInput: PointInput{ID: 9, Embedding: d()}, Name: "deploy", Steps: steps})
	keepProcedure(t, m.AgentMemory, ProcedureInput{PointInput: PointInput{ID: 9, Embedding: d()}, Name: "deploy", Steps: steps[:2]})
	must[*loci.Receipt[Reinforced]](t)(m.procedures.Reinforce(ctx, 9, true))
	facts, episodes, procedures := &m.facts.points, &m.episodes.points, &m.procedures.points
	join(t, facts, 0, "causes", "", greatestID, `{"w":1}`)
	join(t, facts, 0, "causes", "", 0, ``)
	join(t, facts, greatestID, "after", loci.KindEpisode, 5, ``)
	join(t, facts, 0, "causes", loci.KindProcedure, 9, ``)
	join(t, facts, 0, "about", "", 7, ``)
	join(t, episodes, 6, "tells", loci.KindFact, 0, `{"k":[1]}`)
	join(t, episodes, 5, "before", "", 6, ``)
	join(t, procedures, 9, "tells", loci.KindFact, 7, ``)
	must[*loci.Receipt[Superseded]](t)(m.facts.Supersede(ctx, SupersedeRequest{Old: 7, New: 0, FromUS: new(T + 3*second)}))
}

// serialized is the file of a kind.
func serialized(t testing.TB, s *points) []byte {
	t.Helper()
	var b bytes.Buffer
	sum := must[*Summary](t)(s.Serialize(t.Context(), &b))
	if sum.Bytes != int64(b.Len()) {
		t.Errorf("the summary says %d bytes of %d", sum.Bytes, b.Len())
	}
	return b.Bytes()
}

func deserialize(t testing.TB, s *points, file []byte) Restored {
	t.Helper()
	return must[*loci.Receipt[Restored]](t)(s.Deserialize(t.Context(), bytes.NewReader(file))).Value
}

func TestSerializeEverything(t *testing.T) { // Z1
	m := openEmbedding(t, 4)
	furnish(t, m)
	kinds := wholeKinds(m.AgentMemory)
	before := whole(t, m.AgentMemory)
	for i, s := range kinds {
		file := serialized(t, s)
		if again := serialized(t, s); !bytes.Equal(again, file) {
			t.Errorf("%s: two files of the same are different", s.noun)
		}
		n := must[*Count](t)(s.Count(t.Context())).Count
		if got := must[*loci.Receipt[int64]](t)(s.Clear(t.Context())).Value; got != n {
			t.Errorf("%s: cleared %d of %d", s.noun, got, n)
		}
		if i == 0 {
			m.store(9, "later", x())
			m.store(11, "later", x())
		}
		out := deserialize(t, s, file)
		if out.Facts+out.Episodes+out.Procedures != n || out.Expired != 0 || out.DroppedRelations != 0 {
			t.Errorf("%s: %+v", s.noun, out)
		}
		wantWhole(t, s.noun, m.AgentMemory, before)
		m.deepCheck()
	}
	m.sweep()
	m.deepCheck()
	m.embedPending()
	if v := m.vector(9); len(v) != 4 {
		t.Errorf("the pending vector became %v", v)
	}
	m.fake.Forget()
	before = whole(t, m.AgentMemory)
	deserialize(t, kinds[0], serialized(t, kinds[0]))
	m.embedPending()
	wantWhole(t, "restored over itself", m.AgentMemory, before)
	if calls := m.fake.Calls(); len(calls) > 0 {
		for _, c := range calls {
			if slices.Contains(c.Texts, "pending tide") {
				t.Errorf("a vector that was in the file was made again: %+v", calls)
			}
		}
	}
	m.reopen()
	wantWhole(t, "reopened", m.AgentMemory, before)
}

func TestDeserializeDamage(t *testing.T) { // Z2
	m := openMemory(t, 4)
	furnish(t, m)
	s := &m.facts.points
	file := serialized(t, s)
	before, unchanged := whole(t, m.AgentMemory), m.unchanged()
	step := 1
	if testing.Short() {
		step = 67
	}
	try := func(what string, b []byte) {
		t.Helper()
		_, err := s.Deserialize(t.Context(), bytes.NewReader(b))
		if !errors.Is(err, loci.ErrValidation) && !errors.Is(err, loci.ErrSchemaVersion) {
			t.Fatalf("%s: %v", what, err)
		}
		wantCode(t, err, loci.CodeOf(err))
	}
	for n := 0; n < len(file); n += step {
		try(fmt.Sprintf("cut at %d", n), file[:n])
		b := bytes.Clone(file)
		b[n] ^= 1 << (n % 8)
		try(fmt.Sprintf("byte %d changed", n), b)
	}
	try("something behind the end", append(bytes.Clone(file), 0))
	unchanged()
	wantWhole(t, "after damage", m.AgentMemory, before)
	wantNoSpool(t, m.dir)
}

// wantNoSpool fails if anything that came from a stream is left.
func wantNoSpool(t testing.TB, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, filesDir, "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestDeserializeWrongFiles(t *testing.T) { // Z3
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "eight", Dimension: 8}))
	file := serialized(t, &other.Semantic().points)
	unchanged := m.unchanged()
	_, err := m.facts.Deserialize(t.Context(), bytes.NewReader(file))
	if e := wantCode(t, err, loci.ErrInvalidVector); !strings.Contains(e.Message, "8") || !strings.Contains(e.Message, "4") {
		t.Errorf("the message names not both numbers: %s", e.Message)
	}
	_, err = m.facts.Deserialize(t.Context(), bytes.NewReader(newerVersion(serialized(t, &m.facts.points))))
	wantCode(t, err, loci.ErrSchemaVersion)
	_, err = m.facts.Deserialize(t.Context(), bytes.NewReader(serialized(t, &m.episodes.points)))
	wantCode(t, err, loci.ErrValidation)
	unchanged()
}

// newerVersion makes a file that says to be of a newer version.
func newerVersion(file []byte) []byte {
	b := bytes.Clone(file)
	binary.LittleEndian.PutUint32(b[8:], agentfile.Version+1)
	binary.LittleEndian.PutUint32(b[20:], crc32.Checksum(b[:20], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func TestDeserializeExpiry(t *testing.T) { // Z4
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withTTL(60))
	m.store(1, "tides", x(), withTTL(60))
	m.store(2, "lamp", y())
	m.relate2(1, 2)
	file := serialized(t, &m.facts.points)
	m.clock.Set(T + 30*second)
	if out := deserialize(t, &m.facts.points, file); out.Facts != 2 || out.Expired != 0 || out.Versions != 1 || out.Relations != 1 {
		t.Errorf("%+v", out)
	}
	if f := m.get(1); f == nil || *f.ExpiresAtUS != T+60*second {
		t.Errorf("%+v", f)
	}
	m.clock.Set(T + 61*second)
	if out := deserialize(t, &m.facts.points, file); out.Facts != 1 || out.Expired != 1 || out.Versions != 0 || out.DroppedRelations != 1 {
		t.Errorf("%+v", out)
	}
	m.clock.Set(T)
	if m.get(1) != nil || m.count() != 1 {
		t.Error("a clock that goes back revived a point")
	}
	m.deepCheck()

	// A file from a clock that is ahead.
	ahead := openMemory(t, 4)
	ahead.clock.Set(T + 100*day)
	ahead.store(3, "ahead", x(), withTTL(60))
	deserialize(t, &m.facts.points, serialized(t, &ahead.facts.points))
	m.store(4, "here", x(), withTTL(10))
	if f := m.get(4); f == nil || *f.ExpiresAtUS != T+71*second {
		t.Errorf("the clock moved: %+v", f)
	}
}

// relate2 relates two facts.
func (m *testMemory) relate2(from, to loci.PointID) Edge {
	m.t.Helper()
	return join(m.t, &m.facts.points, from, "causes", "", to, "")
}

func TestDeserializeRelationsOfOtherKinds(t *testing.T) { // Z5
	m := openMemory(t, 4)
	facts, episodes := &m.facts.points, &m.episodes.points
	for id := range loci.PointID(3) {
		m.store(id, "tide", x())
		keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: id + 5}, Description: "e"})
	}
	join(t, facts, 1, "a", loci.KindEpisode, 5, "")
	join(t, facts, 1, "a", loci.KindEpisode, 6, "")
	kept := join(t, episodes, 6, "told", loci.KindFact, 1, `{"k":1}`)
	file := serialized(t, facts)
	must[*loci.Receipt[bool]](t)(m.episodes.Delete(t.Context(), 5))
	m.store(9, "not in the file", y())
	gone := join(t, episodes, 6, "told", loci.KindFact, 9, ``)
	later := join(t, episodes, 7, "told", loci.KindFact, 2, `{"later":true}`)
	must[*loci.Receipt[Edge]](t)(m.episodes.Relate(t.Context(), RelateRequest{From: 6, Type: "told", ToKind: loci.KindFact, To: 1, Properties: loci.Metadata(`{"k":2}`)}))

	out := deserialize(t, facts, file)
	if out.DroppedRelations != 2 || out.Relations != 2 {
		t.Errorf("%+v", out)
	}
	m.deepCheck()
	edges := must[*Edges](t)(episodes.Relations(t.Context(), RelationsRequest{ID: 6})).Edges
	if len(edges) != 1 || edges[0].ID != kept.ID || string(edges[0].Properties) != `{"k":1}` {
		t.Errorf("relations of episode 6: %+v, want %d as in the file", edges, kept.ID)
	}
	edges = must[*Edges](t)(facts.IncomingRelations(t.Context(), RelationsRequest{ID: 2})).Edges
	if len(edges) != 1 || edges[0].ID != later.ID || string(edges[0].Properties) != `{"later":true}` {
		t.Errorf("relations to fact 2: %+v, want %d as in the memory", edges, later.ID)
	}
	// The id of the one that is gone is free for the same relation.
	m.store(9, "again", y())
	if again := join(t, episodes, 6, "told", loci.KindFact, 9, ``); again.ID != gone.ID {
		t.Errorf("id %d, before %d", again.ID, gone.ID)
	}
	m.sweep()
	m.deepCheck()
}

func TestDeserializeElsewhere(t *testing.T) { // Z6, W5
	m := openMemory(t, 4)
	furnish(t, m)
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Namespace: "n2", Scope: "s2", Dimension: 4}))
	before := whole(t, m.AgentMemory)
	for _, s := range wholeKinds(m.AgentMemory) {
		file := serialized(t, s)
		for _, to := range wholeKinds(other) {
			if to.kind == s.kind {
				deserialize(t, to, file)
			}
		}
	}
	f := must[*Found[loci.Fact]](t)(other.Semantic().Get(t.Context(), GetRequest{ID: 0})).Point
	if f == nil || f.Namespace != "n2" || f.Scope != "s2" {
		t.Errorf("%+v", f)
	}
	wantWhole(t, "the memory that it came from", m.AgentMemory, before)
	renamed := strings.NewReplacer(`"namespace": "default"`, `"namespace": "n2"`, `"scope": "public"`, `"scope": "s2"`).Replace(before)
	// Relations between kinds that were restored one after the other are there once both are.
	for _, s := range wholeKinds(m.AgentMemory) {
		for _, to := range wholeKinds(other) {
			if to.kind == s.kind {
				deserialize(t, to, serialized(t, s))
			}
		}
	}
	wantWhole(t, "the memory that it went to", other, renamed)
	m.deepCheck()
}

func TestDeserializeThenWrite(t *testing.T) { // Z7
	m := openMemory(t, 4)
	for id := range loci.PointID(20) {
		m.store(id, "tide", x())
	}
	before := m.get(3).Revision
	deserialize(t, &m.facts.points, serialized(t, &m.facts.points))
	_, err := m.facts.UpdateMetadata(t.Context(), UpdateRequest{ID: 3, Updates: loci.Metadata(`{"a":1}`), ExpectedRevision: &before})
	wantCode(t, err, loci.ErrStaleRevision)
	m.store(3, "after", y())
	m.sweep()
	if m.get(3).Content != "after" || m.count() != 20 {
		t.Errorf("%d facts, %+v", m.count(), m.get(3))
	}
}

func TestDeserializeBrokenReaders(t *testing.T) { // Z8
	m := openMemory(t, 4)
	for id := range loci.PointID(50) {
		m.store(id, strings.Repeat("tide ", 200), x())
	}
	file := serialized(t, &m.facts.points)
	unchanged := m.unchanged()
	broken := errors.New("the line is cut")
	_, err := m.facts.Deserialize(t.Context(), iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(file))))
	wantCode(t, err, loci.ErrIO)
	_, err = m.facts.Deserialize(t.Context(), iotest.ErrReader(broken))
	if wantCode(t, err, loci.ErrIO); !errors.Is(err, broken) {
		t.Errorf("%v does not tell the cause", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	_, err = m.facts.Deserialize(ctx, &countingReader{r: bytes.NewReader(file), then: stop, after: 2})
	wantCode(t, err, loci.ErrCanceled)
	unchanged()
	wantNoSpool(t, m.dir)
	_, err = m.facts.Serialize(t.Context(), brokenWriter{})
	wantCode(t, err, loci.ErrIO)
	_, err = m.facts.Serialize(ctx, &bytes.Buffer{})
	wantCode(t, err, loci.ErrCanceled)
	_, err = m.facts.Clear(ctx)
	wantCode(t, err, loci.ErrCanceled)
	unchanged()
}

type countingReader struct {
	r     *bytes.Reader
	after int
	then  func()
}

func (r *countingReader) Read(p []byte) (int, error) {
	if r.after--; r.after == 0 {
		r.then()
	}
	return r.r.Read(p)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestSerializeFiles(t *testing.T) {
	m := openMemory(t, 4)
	furnish(t, m)
	before := whole(t, m.AgentMemory)
	path := filepath.Join(t.TempDir(), "facts.loci")
	ctx := t.Context()
	must[*Summary](t)(m.facts.SerializeTo(ctx, FileRequest{path}))
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v", st, err)
	}
	_, err = m.facts.SerializeTo(ctx, FileRequest{path})
	wantCode(t, err, loci.ErrIO)
	must[*loci.Receipt[int64]](t)(m.facts.Clear(ctx))
	must[*loci.Receipt[Restored]](t)(m.facts.DeserializeFrom(ctx, FileRequest{path}))
	wantWhole(t, "from a file", m.AgentMemory, before)
	if after, err := os.Stat(path); err != nil || after.Size() != st.Size() {
		t.Errorf("the file changed: %v %v", after, err)
	}
	_, err = m.facts.DeserializeFrom(ctx, FileRequest{filepath.Dir(path)})
	wantField(t, err, loci.ErrValidation, "path")
	_, err = m.facts.DeserializeFrom(ctx, FileRequest{path + "x"})
	wantField(t, err, loci.ErrNotFound, "path")
	for _, s := range wholeKinds(m.AgentMemory) {
		_, err = s.DeserializeFrom(ctx, FileRequest{})
		wantField(t, err, loci.ErrValidation, "path")
		_, err = s.SerializeTo(ctx, FileRequest{})
		wantField(t, err, loci.ErrValidation, "path")
	}
	_, err = m.facts.SerializeTo(ctx, FileRequest{filepath.Join(path, "below")})
	wantCode(t, err, loci.ErrIO)
}

func TestSerializeNothing(t *testing.T) { // Y4
	m := openMemory(t, 4)
	file := serialized(t, &m.facts.points)
	for id := range loci.PointID(5) {
		m.store(id, "tide", x())
	}
	if out := deserialize(t, &m.facts.points, file); out.Facts != 0 || m.count() != 0 {
		t.Errorf("%+v, %d facts", out, m.count())
	}
	// A memory that is not there yet is made, of the file's dimension.
	lazy := must[*AgentMemory](t)(OpenLazy(t.Context(), m.db, Config{Scope: "later"}))
	m.store(1, "tide", x())
	deserialize(t, &lazy.Semantic().points, serialized(t, &m.facts.points))
	if there := must[*AgentMemory](t)(OpenExisting(t.Context(), m.db, Config{Scope: "later"})); there.Dimension() != 4 ||
		must[*Count](t)(there.Semantic().Count(t.Context())).Count != 1 {
		t.Errorf("dimension %d", there.Dimension())
	}
}

// TestDeserializeWhatNobodyStored gives files that keep to the format and hold what
// the store would have refused.
func TestDeserializeWhatNobodyStored(t *testing.T) { // Z2
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	unchanged := m.unchanged()
	good := agentfile.Point{Kind: "fact", Key: 1, Content: "c", Version: 3, Recorded: 10, Vector: x()}
	version := agentfile.PointVersion{Kind: "fact", Key: 1, Version: 1, RecordedAt: 1, RecordedTo: 10, Content: "c"}
	edge := agentfile.Edge{FromKind: "fact", From: 1, ToKind: "fact", To: 1, Type: "same", ID: 4}
	file := func(point func(*agentfile.Point), more ...any) []byte {
		var b bytes.Buffer
		w := must[*agentfile.Writer](t)(agentfile.NewWriter(&b, &agentfile.Header{Dimension: 4, Space: "agent-4", Kinds: []string{"fact"}}))
		p := good
		if point != nil {
			point(&p)
		}
		if err := w.Point(&p); err != nil {
			t.Fatal(err)
		}
		for _, r := range more {
			var err error
			switch r := r.(type) {
			case agentfile.PointVersion:
				err = w.Version(&r)
			case agentfile.Edge:
				err = w.Edge(&r)
			case agentfile.Point:
				err = w.Point(&r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		must[agentfile.Summary](t)(w.Close())
		return b.Bytes()
	}
	second := edge
	second.Type = "same too"
	for what, b := range map[string][]byte{
		"a name":               file(func(p *agentfile.Point) { p.Title = "n" }),
		"data":                 file(func(p *agentfile.Point) { p.Data = []byte(`{}`) }),
		"evidence":             file(func(p *agentfile.Point) { p.Evidence = []byte(`[]`) }),
		"reserved metadata":    file(func(p *agentfile.Point) { p.Metadata = []byte(`{"_loci_x":1}`) }),
		"content as metadata":  file(func(p *agentfile.Point) { p.Metadata = []byte(`{"content":"x"}`) }),
		"a key twice":          file(func(p *agentfile.Point) { p.Metadata = []byte(`{"a":1,"a":2}`) }),
		"tags out of order":    file(func(p *agentfile.Point) { p.Tags = []string{"b", "a"} }),
		"a padded thread":      file(func(p *agentfile.Point) { p.Thread = " t" }),
		"a place in no thread": file(func(p *agentfile.Point) { p.Position = new(int64(1)) }),
		"an empty validity":    file(func(p *agentfile.Point) { p.ValidFrom, p.ValidTo = new(int64(5)), new(int64(5)) }),
		"a time":               file(func(p *agentfile.Point) { p.HappenedAt = new(int64(5)) }),
		"a confidence":         file(func(p *agentfile.Point) { p.Confidence = 0.5 }),
		"an early expiry":      file(func(p *agentfile.Point) { p.ExpiresAt = new(int64(-5)) }),
		"a long text":          file(func(p *agentfile.Point) { p.Content = strings.Repeat("x", loci.MaxTextBytes+1) }),
		"a version above its own": file(nil, func() agentfile.PointVersion {
			v := version
			v.Version = 3
			return v
		}()),
		"versions that overlap": file(nil, version, func() agentfile.PointVersion {
			v := version
			v.Version, v.RecordedAt = 2, 9
			return v
		}()),
		"a version into the future": file(nil, func() agentfile.PointVersion {
			v := version
			v.RecordedTo = 11
			return v
		}()),
		"a relation without an id": file(nil, func() agentfile.Edge { e := edge; e.ID = 0; return e }()),
		"two relations of one id":  file(nil, edge, second),
		"a blank type":             file(nil, func() agentfile.Edge { e := edge; e.Type = " "; return e }()),
		"bad properties":           file(nil, func() agentfile.Edge { e := edge; e.Properties = []byte(`{"a":1,"a":2}`); return e }()),
	} {
		_, err := m.facts.Deserialize(t.Context(), bytes.NewReader(b))
		if wantCode(t, err, loci.ErrValidation); t.Failed() {
			t.Fatalf("%s: %v", what, err)
		}
	}
	unchanged()
	// Two of one position are only seen when they are written.
	at := func(p *agentfile.Point) { p.Thread, p.Position = "t", new(int64(1)) }
	twin := good
	at(&twin)
	twin.Key = 2
	_, err := m.facts.Deserialize(t.Context(), bytes.NewReader(file(at, twin)))
	wantCode(t, err, loci.ErrValidation)
	m.sweep()
	m.deepCheck()
	if m.count() != 1 || m.get(1).Content != "tide" {
		t.Error("the memory changed")
	}
	if out := deserialize(t, &m.facts.points, file(nil, version, edge)); out.Facts != 1 || out.Versions != 1 || out.Relations != 1 {
		t.Errorf("%+v", out)
	}
	m.deepCheck()
}

func TestDeserializeAnotherModel(t *testing.T) {
	m := openEmbedding(t, 4)
	m.store(1, "tide", nil)
	m.store(2, "lamp", d())
	made := m.vector(1)
	file := serialized(t, &m.facts.points)
	second := fakeembed.New(4)
	bindEmbedder(t, m.db, "others", second)
	must[*loci.Receipt[loci.EmbeddingSpace]](t)(m.db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "plain", Model: "m", Dimension: 4}))
	for space, pending := range map[string]bool{"others": true, "plain": false} {
		other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: space, Space: space}))
		deserialize(t, &other.Semantic().points, file)
		got := must[*Found[loci.Fact]](t)(other.Semantic().Get(t.Context(), GetRequest{ID: 1, WithEmbedding: true})).Embedding
		if pending && got != nil || !pending && !slices.Equal(got, made) {
			t.Errorf("%s: the vector that a model made is %v", space, got)
		}
		got = must[*Found[loci.Fact]](t)(other.Semantic().Get(t.Context(), GetRequest{ID: 2, WithEmbedding: true})).Embedding
		if !slices.Equal(got, d()) {
			t.Errorf("%s: the vector that was given is %v", space, got)
		}
	}
}
