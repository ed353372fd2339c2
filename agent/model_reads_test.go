package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// seen is a point of any kind as it is read.
type seen struct {
	loci.PointHeader
	wording
	at              int64
	confidence      float64
	uses, successes int64
	lastUsed        *int64
}

func seenFact(f *loci.Fact) *seen {
	return &seen{PointHeader: f.PointHeader, wording: wording{content: f.Content, from: f.ValidFromUS, to: f.ValidToUS}}
}

func seenEpisode(e *loci.Episode) *seen {
	return &seen{PointHeader: e.PointHeader, wording: wording{content: e.Description}, at: e.AtUS}
}

func seenProcedure(p *loci.Procedure) *seen {
	return &seen{PointHeader: p.PointHeader, wording: wording{name: p.Name, steps: p.Steps}, confidence: p.Confidence, uses: p.Uses, successes: p.Successes, lastUsed: p.LastUsedUS}
}

func seenAll[T any](items []T, as func(*T) *seen) []*seen {
	out := make([]*seen, len(items))
	for i := range items {
		out[i] = as(&items[i])
	}
	return out
}

// get reads a point; nil when there is none.
func (a *adversary) get(o *tenant, r pointRef, asOf *int64) (*seen, []float32) {
	a.rt.Helper()
	req := GetRequest{ID: r.id, WithEmbedding: true, AsOfRecordedUS: asOf}
	switch r.kind {
	case loci.KindFact:
		return seenOf(a, seenFact)(o.facts.Get(a.ctx(), req))
	case loci.KindEpisode:
		return seenOf(a, seenEpisode)(o.episodes.Get(a.ctx(), req))
	}
	return seenOf(a, seenProcedure)(o.procedures.Get(a.ctx(), req))
}

func seenOf[T any](a *adversary, as func(*T) *seen) func(*Found[T], error) (*seen, []float32) {
	return func(f *Found[T], err error) (*seen, []float32) {
		a.rt.Helper()
		a.ok(err)
		if f.Point == nil {
			return nil, f.Embedding
		}
		return as(f.Point), f.Embedding
	}
}

// list reads all points of a kind, a few at a time.
func (a *adversary) list(o *tenant, kind loci.Kind, asOf *int64) (out []*seen) {
	a.rt.Helper()
	limit := 1 + len(o.n.points)%3
	for req := (ListRequest{Limit: &limit, AsOfRecordedUS: asOf}); ; {
		var items []*seen
		switch kind {
		case loci.KindFact:
			page, err := o.facts.List(a.ctx(), req)
			a.ok(err)
			items, req.Cursor = seenAll(page.Items, seenFact), page.NextCursor
		case loci.KindEpisode:
			page, err := o.episodes.List(a.ctx(), req)
			a.ok(err)
			items, req.Cursor = seenAll(page.Items, seenEpisode), page.NextCursor
		default:
			page, err := o.procedures.List(a.ctx(), req)
			a.ok(err)
			items, req.Cursor = seenAll(page.Items, seenProcedure), page.NextCursor
		}
		if out = append(out, items...); req.Cursor == "" {
			return out
		}
		if len(out) > 1000 {
			a.rt.Fatalf("the pages of %v do not end", kind)
		}
	}
}

// learnRevisions has the model know the revisions that only the store gives.
func (a *adversary) learnRevisions(o *tenant) {
	a.rt.Helper()
	for r, p := range o.n.points {
		if p.revision == 0 {
			s, _ := a.get(o, r, nil)
			if s == nil {
				a.rt.Fatalf("%v is not there", r)
				return
			}
			p.revision = s.Revision
		}
	}
}

func sameMetadata(m loci.Metadata, want map[string]string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(m, &members) != nil && len(m) > 0 {
		return false
	}
	return maps.EqualFunc(members, want, func(raw json.RawMessage, literal string) bool { return string(raw) == literal })
}

// differs says what of a point is not as the model has it; "" for nothing.
func (s *seen) differs(p *naivePoint, r pointRef) string {
	switch {
	case s.ID != r.id:
		return "id"
	case s.content != p.content || s.name != p.name || !slices.Equal(s.steps, p.steps):
		return "text"
	case !sameMetadata(s.Metadata, p.metadata):
		return "metadata"
	case !samePtr(s.from, p.from) || !samePtr(s.to, p.to):
		return "validity"
	case s.Version != p.version || s.RecordedAtUS != p.recorded:
		return "version"
	case !slices.Equal(s.Tags, p.tags):
		return "tags"
	case s.Thread != p.thread || !samePtr(s.Position, p.position):
		return "place in its thread"
	case !samePtr(s.ExpiresAtUS, p.expires):
		return "expiry"
	case s.CreatedAtUS != p.created || s.at != p.at:
		return "time"
	case p.revision != 0 && s.Revision != p.revision:
		return "revision"
	case r.kind == loci.KindProcedure && (math.Abs(s.confidence-p.confidence) > 1e-12 || s.uses != p.uses || s.successes != p.successes || !samePtr(s.lastUsed, p.lastUsed)):
		return "practice"
	}
	return ""
}

// is fails unless what was read is the point of the model.
func (a *adversary) is(o *tenant, r pointRef, s *seen) {
	a.rt.Helper()
	p := o.n.points[r]
	if what := s.differs(p, r); what != "" {
		a.rt.Fatalf("the %s of %v in %s: %+v, the model's %+v", what, r, o.CollectionName(), s, p)
	}
	if s.Namespace != o.cfg.Namespace || s.Scope != o.cfg.Scope {
		a.rt.Fatalf("%v lies in %q, %q", r, s.Namespace, s.Scope)
	}
}

// check compares what there is of a memory with its model.
func (a *adversary) check(o *tenant) {
	a.rt.Helper()
	for _, kind := range kindsInOrder() {
		want := o.n.refs(kind)
		got := a.list(o, kind, nil)
		if len(got) != len(want) {
			a.rt.Fatalf("%s lists %d points of the kind %s, the model %v", o.CollectionName(), len(got), kind, want)
		}
		for i, r := range want {
			a.is(o, r, got[i])
		}
		count, err := o.of(kind).Count(a.ctx())
		a.ok(err)
		if int(count.Count) != len(want) || count.Empty != (len(want) == 0) {
			a.rt.Fatalf("%s counts %+v of %s, the model %d", o.CollectionName(), count, kind, len(want))
		}
	}
}

// checkAll compares all reads of all memories with their models.
func (a *adversary) checkAll() {
	a.rt.Helper()
	for _, o := range a.tenants {
		a.check(o)
		a.learnRevisions(o)
		for _, kind := range kindsInOrder() {
			for _, id := range []loci.PointID{0, 1, 2, 3, 4, 1 << 63, 1<<64 - 1} {
				a.checkPoint(o, pointRef{kind, id})
			}
			a.checkQuery(o, kind)
		}
		a.match(o)
		a.checkStatus(o)
		a.checkTimes(o)
	}
}

func (a *adversary) checkPoint(o *tenant, r pointRef) {
	a.rt.Helper()
	p := o.n.points[r]
	s, vector := a.get(o, r, nil)
	m, ok, err := o.of(r.kind).GetMetadata(a.ctx(), r.id)
	a.ok(err)
	if (s != nil) != (p != nil) || ok != (p != nil) {
		a.rt.Fatalf("%v is there: %v, its metadata: %v, in the model: %v", r, s != nil, ok, p != nil)
	}
	history, err := o.of(r.kind).History(a.ctx(), PointRequest{ID: r.id})
	a.ok(err)
	if p == nil {
		if len(history.Versions) > 0 || vector != nil {
			a.rt.Fatalf("%v is not there, and has %+v, %v", r, history, vector)
		}
	} else {
		a.is(o, r, s)
		if !sameMetadata(m, p.metadata) || !p.hasVector(vector) {
			a.rt.Fatalf("%v has the metadata %s and the vector %v, in the model %v and %v", r, m, vector, p.metadata, p.vector)
		}
		a.checkHistory(o, r, history.Versions)
		for _, at := range []int64{p.recorded, p.recorded - 1, p.recorded - second, a.life} {
			a.checkBelieved(o, r, at)
		}
	}
	a.checkEdges(o, r)
}

// hasVector compares a vector: what a caller gave bit for bit.
func (p *naivePoint) hasVector(v []float32) bool {
	if !p.made || len(v) != len(p.vector) {
		return slices.Equal(v, p.vector)
	}
	return cosine(v, p.vector) > 1-1e-6
}

func cosine(a, b []float32) float64 {
	dot, x, y := 0.0, 0.0, 0.0
	for i := range a {
		dot, x, y = dot+float64(a[i])*float64(b[i]), x+float64(a[i])*float64(a[i]), y+float64(b[i])*float64(b[i])
	}
	return dot / math.Sqrt(x) / math.Sqrt(y)
}

// kept are the earlier versions that can be seen, oldest first.
func (n *naive) kept(p *naivePoint) ([]wording, []int64) {
	cut := max(0, len(p.past)-n.keep())
	return p.past[cut:], p.replacedRecorded[cut:]
}

func (a *adversary) checkHistory(o *tenant, r pointRef, got []Version) {
	a.rt.Helper()
	p := o.n.points[r]
	past, until := o.n.kept(p)
	if len(got) != len(past)+1 || got[0].Version != p.version || got[0].RecordedToUS != nil {
		a.rt.Fatalf("%v has the history %+v, in the model %d versions before %d", r, got, len(past), p.version)
	}
	for i, v := range got[1:] {
		w := past[len(past)-1-i]
		if v.Version != w.version || v.RecordedAtUS != w.recorded || *v.RecordedToUS != until[len(past)-1-i] || !samePtr(v.ValidFromUS, w.from) ||
			!samePtr(v.ValidToUS, w.to) || v.Content != w.content || v.Name != w.name || !slices.Equal(v.Steps, w.steps) || !sameMetadata(v.Metadata, w.metadata) {
			a.rt.Fatalf("%v had %+v, in the model %+v until %d", r, v, w, until[len(past)-1-i])
		}
	}
}

// believed is what was believed of a point; nil for nothing.
func (n *naive) believed(p *naivePoint, at int64) *wording {
	past, _ := n.kept(p)
	all := append(slices.Clone(past), p.wording)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].recorded <= at {
			return &all[i]
		}
	}
	return nil
}

func (a *adversary) checkBelieved(o *tenant, r pointRef, at int64) {
	a.rt.Helper()
	want := o.n.believed(o.n.points[r], at)
	got, _ := a.get(o, r, &at)
	if (got != nil) != (want != nil) {
		a.rt.Fatalf("%v as of %d: %+v, in the model %+v", r, at, got, want)
	}
	listed := slices.ContainsFunc(a.list(o, r.kind, &at), func(s *seen) bool { return s.ID == r.id && s.Version == got.Version })
	if listed != (want != nil) {
		a.rt.Fatalf("%v as of %d is listed: %v", r, at, listed)
	}
	if want != nil && (got.Version != want.version || got.content != want.content || got.name != want.name || !sameMetadata(got.Metadata, want.metadata) ||
		!samePtr(got.from, want.from) || !samePtr(got.to, want.to)) {
		a.rt.Fatalf("%v as of %d: %+v, in the model %+v", r, at, got, want)
	}
}

func compareEdges(a, b edgeRef) int {
	return cmp.Or(compareRefs(a.from, b.from), cmp.Compare(a.typ, b.typ), compareRefs(a.to, b.to))
}

// isEdge compares a relation, and its id with the one that it always had.
func (a *adversary) isEdge(o *tenant, e edgeRef, got *Edge) {
	a.rt.Helper()
	want := o.n.edges[e]
	is := edgeRef{pointRef{got.FromKind, got.From}, got.Type, pointRef{got.ToKind, got.To}}
	if want == nil || is != e || !sameMetadata(got.Properties, want.properties) || got.CreatedAtUS != want.created {
		a.rt.Fatalf("relation %+v, in the model %v %+v", got, e, want)
	}
	if id, known := o.ids[e]; known && id != got.ID {
		a.rt.Fatalf("%v has the id %d, before %d", e, got.ID, id)
	}
	o.ids[e] = got.ID
}

func (a *adversary) checkEdges(o *tenant, r pointRef) {
	a.rt.Helper()
	for _, incoming := range []bool{false, true} {
		read := o.of(r.kind).Relations
		if incoming {
			read = o.of(r.kind).IncomingRelations
		}
		var got []Edge
		for req := (RelationsRequest{ID: r.id, Limit: new(2)}); ; {
			page, err := read(a.ctx(), req)
			a.ok(err)
			got = append(got, page.Edges...)
			if req.Cursor = page.NextCursor; req.Cursor == "" {
				break
			}
		}
		var want []edgeRef
		for e := range o.n.edges {
			if e.from == r && !incoming || e.to == r && incoming {
				want = append(want, e)
			}
		}
		slices.SortFunc(want, func(x, y edgeRef) int {
			return cmp.Or(cmp.Compare(x.typ, y.typ), compareRefs(x.from, y.from), compareRefs(x.to, y.to))
		})
		if len(got) != len(want) {
			a.rt.Fatalf("%v in %s has %d relations %+v, incoming %v; in the model %v", r, o.CollectionName(), len(got), got, incoming, want)
		}
		for i, e := range want {
			a.isEdge(o, e, &got[i])
		}
	}
}

func (a *adversary) checkStatus(o *tenant) {
	a.rt.Helper()
	s, err := o.Status(a.ctx())
	a.ok(err)
	counts := [3]int64{}
	for i, kind := range kindsInOrder() {
		counts[i] = int64(len(o.n.refs(kind)))
	}
	if [3]int64{s.Facts, s.Episodes, s.Procedures} != counts || s.ClockUS != a.life || s.Snapshots != len(o.n.snapshots) || s.LatestSnapshot != o.n.lastSnapshot ||
		asText(s.Policy) != asText(o.n.policy) || s.Embedder != (o.n.embed != nil) || s.Dimension != 4 {
		a.rt.Fatalf("status of %s: %+v, the model has %v, snapshots %d of %d, policy %s", o.CollectionName(), s, counts, len(o.n.snapshots), o.n.lastSnapshot, asText(o.n.policy))
	}
	list, err := o.Snapshots(a.ctx())
	a.ok(err)
	for i, v := range slices.Sorted(mapKeys(o.n.snapshots)) {
		if got := list.Snapshots[i]; got.Version != v || !got.OK || int(got.Relations) != len(o.n.snapshots[v].edges) {
			a.rt.Fatalf("snapshots of %s: %+v, in the model %d", o.CollectionName(), list, v)
		}
	}
}

func asText(v any) string {
	raw, err := json.Marshal(v)
	return string(raw) + fmt.Sprint(err)
}

// checkTimes asks for episodes by time.
func (a *adversary) checkTimes(o *tenant) {
	a.rt.Helper()
	refs := o.n.refs(loci.KindEpisode)
	slices.SortStableFunc(refs, func(x, y pointRef) int { return cmp.Compare(o.n.points[x].at, o.n.points[y].at) })
	at, until, limit := a.life, a.life+2*second, 1+len(refs)/2
	among := func(keep func(int64) bool) (out []loci.PointID) {
		for _, r := range refs {
			if keep(o.n.points[r].at) {
				out = append(out, r.id)
			}
		}
		return out
	}
	same := func(what string, got *Episodes, err error, want []loci.PointID) {
		a.rt.Helper()
		a.ok(err)
		ids := []loci.PointID{}
		for _, e := range got.Items {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, want[:min(len(want), limit)]) {
			a.rt.Fatalf("%s gives %v, want %v", what, ids, want)
		}
	}
	older, err := o.episodes.OlderThan(a.ctx(), OlderThanRequest{BeforeUS: at, Limit: &limit})
	same("older_than", older, err, among(func(t int64) bool { return t < at }))
	between, err := o.episodes.Between(a.ctx(), BetweenRequest{FromUS: at, ToUS: until, Limit: &limit})
	same("between", between, err, among(func(t int64) bool { return t >= at && t < until }))
	recent, err := o.episodes.Recent(a.ctx(), RecentRequest{SinceUS: new(at - day), Limit: &limit})
	late := among(func(t int64) bool { return t > at-day })
	slices.Reverse(late)
	same("recent", recent, err, late)
}

// naiveSelection is a Selection and what it takes of a model.
type naiveSelection struct {
	Selection
	pairs   map[string]string
	content *string
	at      *int64
}

func (s *naiveSelection) takes(n *naive, p *naivePoint) bool {
	if !p.current(valueOr(s.at, n.now)) || s.content != nil && p.content != *s.content || s.Thread != nil && p.thread != *s.Thread ||
		len(s.Tags) > 0 && !slices.Equal(s.Tags, p.tags) {
		return false
	}
	for key, literal := range s.pairs {
		if have, ok := p.metadata[key]; !ok || !sameLiteral(have, literal) {
			return false
		}
	}
	return true
}

func (a *adversary) selection(kind loci.Kind) *naiveSelection {
	s := &naiveSelection{}
	if a.bool("all of them") {
		return s
	}
	if a.odds(3, "filter") {
		s.pairs, s.Filter = a.metadata("filter")
		if strings.Contains(string(s.Filter), reservedPrefix) {
			s.pairs, s.Filter = nil, nil
		}
	}
	if kind == loci.KindFact && s.Filter == nil && a.odds(4, "text") {
		s.content = new(a.text())
		s.Filter = loci.Metadata(fmt.Sprintf(`{"content":%q}`, *s.content))
	}
	if a.odds(4, "tags") {
		s.Tags = []string{"nova"}
	}
	if a.odds(5, "thread") {
		s.Thread = new("talk")
	}
	s.at = a.maybeTime("valid at")
	s.AsOfValidUS = s.at
	return s
}

// modelHit is a point with its score.
type modelHit struct {
	id    loci.PointID
	score float64
}

// ask asks for the points nearest to a vector.
func (a *adversary) ask(o *tenant, kind loci.Kind, v []float32, k, offset int, s *naiveSelection, approximate bool) (out []modelHit) {
	a.rt.Helper()
	switch kind {
	case loci.KindFact:
		hits, err := o.facts.QueryHits(a.ctx(), QueryRequest{Embedding: v, K: &k, Offset: offset, Selection: s.Selection, Approximate: approximate})
		a.ok(err)
		for _, h := range hits.Hits {
			if p := o.n.points[pointRef{kind, h.ID}]; p != nil && p.content != h.Content {
				a.rt.Fatalf("hit %+v, in the model %q", h, p.content)
			}
			out = append(out, modelHit{h.ID, h.Score})
		}
	case loci.KindEpisode:
		hits, err := o.episodes.RecallSimilar(a.ctx(), RecallRequest{Embedding: v, K: &k, Offset: offset, Selection: s.Selection, Approximate: approximate})
		a.ok(err)
		for _, h := range hits.Hits {
			out = append(out, modelHit{h.Episode.ID, h.Score})
		}
	default:
		hits, err := o.procedures.Recall(a.ctx(), ProcedureRecallRequest{Embedding: v, K: &k, Offset: offset, Selection: s.Selection, Approximate: approximate})
		a.ok(err)
		for _, h := range hits.Hits {
			out = append(out, modelHit{h.Procedure.ID, h.Score})
		}
	}
	return out
}

// checkQuery asks by vector. Scores are compared within the rounding of sums, which
// also decides about points that lie as near as each other; the order is by the
// scores that came, whatever they are.
func (a *adversary) checkQuery(o *tenant, kind loci.Kind) {
	a.rt.Helper()
	v, s := a.vector(), a.selection(kind)
	k, offset := rapid.IntRange(1, 4).Draw(a.rt, "k"), rapid.IntRange(0, 2).Draw(a.rt, "offset")
	exactly := map[loci.PointID]float64{}
	tolerance := 1e-12
	for _, r := range o.n.refs(kind) {
		if p := o.n.points[r]; p.vector != nil && s.takes(o.n, p) {
			exactly[r.id] = cosine(v, p.vector)
			if p.made {
				tolerance = 1e-6
			}
		}
	}
	approximate := a.bool("approximate")
	if approximate {
		tolerance = 1e-4
	}
	all := a.ask(o, kind, v, 100, 0, s, approximate)
	if len(all) != len(exactly) {
		a.rt.Fatalf("query of %s in %s, %s: %v, the model has %v", kind, o.CollectionName(), asText(s.Selection), all, exactly)
	}
	for i, h := range all {
		if want, ok := exactly[h.id]; !ok || math.Abs(h.score-want) > tolerance {
			a.rt.Fatalf("query of %s: %v, the model has %v", kind, all, exactly)
		}
		if i > 0 && cmp.Or(cmp.Compare(all[i-1].score, h.score), cmp.Compare(h.id, all[i-1].id)) <= 0 {
			a.rt.Fatalf("query of %s: %v is not in order", kind, all)
		}
	}
	from := min(offset, len(all))
	if got := a.ask(o, kind, v, k, offset, s, approximate); !slices.Equal(got, all[from:min(from+k, len(all))]) {
		a.rt.Fatalf("query of %s, k %d, offset %d: %v of %v", kind, k, offset, got, all)
	}
}

// look asks a memory by vector and by words.
func (a *adversary) look(o *tenant) {
	kind := a.kind("kind")
	a.checkQuery(o, kind)
	word := rapid.SampledFrom([]string{"tide", "ferry", "lamp", "灯塔"}).Draw(a.rt, "word")
	s := a.selection(kind)
	var got []loci.PointID
	switch kind {
	case loci.KindFact:
		hits, err := o.facts.QueryText(a.ctx(), TextRequest{Text: word, K: new(100), Selection: s.Selection})
		a.ok(err)
		got = hitIDs(hits.Hits)
	case loci.KindEpisode:
		hits, err := o.episodes.RecallSimilar(a.ctx(), RecallRequest{Text: word, K: new(100), Selection: s.Selection})
		a.ok(err)
		for _, h := range hits.Hits {
			got = append(got, h.Episode.ID)
		}
	default:
		hits, err := o.procedures.Recall(a.ctx(), ProcedureRecallRequest{Text: word, K: new(100), Selection: s.Selection})
		a.ok(err)
		for _, h := range hits.Hits {
			got = append(got, h.Procedure.ID)
		}
	}
	for _, r := range o.n.refs(kind) {
		p := o.n.points[r]
		found, may := slices.Contains(got, r.id), s.takes(o.n, p)
		has := strings.Contains(p.text(), word)
		if found && !may || may && has && !found || found && !has && !a.words {
			a.rt.Fatalf("%q finds %v: %v; it may: %v, has the word: %v", word, r, found, may, has)
		}
	}
	for _, id := range got {
		if o.n.points[pointRef{kind, id}] == nil {
			a.rt.Fatalf("%q finds %s %d, which is not there", word, kind, id)
		}
	}
}

// match asks for relations between current points.
func (a *adversary) match(o *tenant) {
	kind, s := a.kind("kind"), a.selection(loci.KindEpisode)
	req := MatchRequest{Type: a.relType(), Selection: s.Selection, Limit: new(rapid.IntRange(1, 2).Draw(a.rt, "limit"))}
	toKind := loci.Kind("")
	if a.bool("from?") {
		req.From = new(a.there(o, kind, "from"))
	}
	if a.bool("to?") {
		toKind = a.kind("to kind")
		req.ToKind, req.To = toKind, new(a.there(o, toKind, "to"))
	}
	var got []Match
	for {
		page, err := o.of(kind).Match(a.ctx(), req)
		a.ok(err)
		got = append(got, page.Matches...)
		if req.Cursor = page.NextCursor; req.Cursor == "" {
			break
		}
	}
	at := valueOr(s.at, a.life)
	var want []edgeRef
	for e := range o.n.edges {
		from, to := o.n.points[e.from], o.n.points[e.to]
		far := to
		if req.To != nil {
			far = from
		}
		if e.typ == req.Type && e.from.kind == kind && (req.From == nil || *req.From == e.from.id) && (req.To == nil || toKind == e.to.kind && *req.To == e.to.id) &&
			from.current(at) && to.current(at) && s.takes(o.n, far) {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, compareEdges)
	if len(got) != len(want) {
		a.rt.Fatalf("match %s of %s: %+v, in the model %v", asText(req), kind, got, want)
	}
	for i, e := range want {
		a.isEdge(o, e, &got[i].Edge)
	}
	// What only a query may name is no time of a match.
	if _, err := o.of(kind).Match(a.ctx(), MatchRequest{Type: " "}); errs.CodeOf(err) != loci.ErrValidation {
		a.rt.Fatalf("match of a blank type: %v", err)
	}
}
