package agent

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci"
)

func mapKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// metadata draws an object and its spelling.
func (a *adversary) metadata(label string) (map[string]string, loci.Metadata) {
	m := map[string]string{}
	var literals []string
	for _, class := range valueClasses() {
		literals = append(literals, class...)
	}
	var out []string
	for _, key := range []string{"k", "l", "a.b"} {
		if a.bool(label + " " + key) {
			m[key] = rapid.SampledFrom(literals).Draw(a.rt, label)
			out = append(out, fmt.Sprintf("%q:%s", key, m[key]))
		}
	}
	if len(out) > 0 && a.odds(8, "ours") {
		out = append(out, `"_loci_x":1`)
	}
	if len(out) == 0 && a.bool("no metadata") {
		return m, nil
	}
	return m, loci.Metadata("{" + strings.Join(out, ",") + "}")
}

func (a *adversary) text() string {
	return rapid.SampledFrom([]string{"tide", "ferry", "harbor lamp", "灯塔 tide", "lamp"}).Draw(a.rt, "text")
}

// vector draws one of few directions, and lengths that no product of squares can do
// without care.
func (a *adversary) vector() []float32 {
	v := make([]float32, 4)
	for i := range v {
		v[i] = float32(rapid.IntRange(-1, 2).Draw(a.rt, "number"))
	}
	if slices.Equal(v, make([]float32, 4)) {
		v[0] = 1
	}
	scale := rapid.SampledFrom([]float32{1, 1, 3, 1e-30, 1e30}).Draw(a.rt, "length")
	for i := range v {
		v[i] *= scale
	}
	return v
}

func (a *adversary) time(label string) int64 {
	return a.life + rapid.SampledFrom([]int64{-day, -2 * second, -1, 0, 1, 2 * second, 30 * second, day}).Draw(a.rt, label)
}

func (a *adversary) maybeTime(label string) *int64 {
	if !a.odds(4, label+"?") {
		return nil
	}
	return new(a.time(label))
}

// input draws a point to store.
func (a *adversary) input(o *tenant, kind loci.Kind, id loci.PointID) *naiveInput {
	in := &naiveInput{kind: kind, content: a.text()}
	in.ID = id
	in.metadata, in.Metadata = a.metadata("metadata")
	if kind == loci.KindFact && o.n.embed == nil && !a.odds(12, "no vector") || a.bool("vector") {
		in.Embedding = a.vector()
		if a.odds(12, "too long") {
			in.Embedding = append(in.Embedding, 1)
		}
	}
	if a.odds(3, "tags") {
		in.Tags = []string{"nova"}
	}
	if a.odds(4, "thread") {
		in.Thread = new("talk")
	}
	if a.odds(4, "position") && (in.Thread != nil || a.odds(6, "no thread")) {
		in.Position = new(rapid.Int64Range(0, 1).Draw(a.rt, "position"))
	}
	if a.odds(3, "ttl") {
		in.TTLSeconds = new(rapid.SampledFrom([]uint64{0, 1, 2, 5, 30, 86_400, 1<<64 - 1}).Draw(a.rt, "seconds"))
	}
	if a.odds(6, "expects") {
		in.ExpectedRevision = new(a.expected(o, pointRef{kind, id}))
	}
	switch kind {
	case loci.KindFact:
		in.from, in.to = a.maybeTime("from"), a.maybeTime("to")
	case loci.KindEpisode:
		in.at = a.maybeTime("at")
	default:
		in.name, in.steps, in.content = in.content, []string{a.text(), "build it"}, ""
		if a.odds(4, "confidence") {
			in.confidence = new(rapid.SampledFrom([]float64{0, 0.1, 0.9, 1}).Draw(a.rt, "how sure"))
		}
		in.reset = a.odds(5, "reset")
	}
	return in
}

// expected draws the revision of a point, or one that it does not have.
func (a *adversary) expected(o *tenant, r pointRef) int64 {
	p := o.n.points[r]
	if p == nil || a.odds(3, "stale") {
		return 1
	}
	a.learnRevisions(o)
	return o.n.points[r].revision
}

func (in *naiveInput) fact() FactInput {
	return FactInput{PointInput: in.PointInput, Content: in.content, ValidFromUS: in.from, ValidToUS: in.to}
}

func (in *naiveInput) episode() EpisodeInput {
	return EpisodeInput{PointInput: in.PointInput, Description: in.content, AtUS: in.at}
}

// store makes the call that stores a point of any kind.
func (a *adversary) store(o *tenant, in *naiveInput) (Stored, error) {
	var r *loci.Receipt[Stored]
	var err error
	switch in.kind {
	case loci.KindFact:
		r, err = o.facts.Put(a.ctx(), in.fact())
	case loci.KindEpisode:
		r, err = o.episodes.Record(a.ctx(), in.episode())
	default:
		r, err = o.procedures.Learn(a.ctx(), ProcedureInput{PointInput: in.PointInput, Name: in.name, Steps: in.steps, Confidence: in.confidence, Reset: in.reset})
	}
	return receipt(a, r, err)
}

// removes says that an input is checked, and its point removed.
func (in *naiveInput) removes() bool { return in.TTLSeconds != nil && *in.TTLSeconds == 0 }

// furnish stores and relates several points.
func (a *adversary) furnish(o *tenant) {
	for range rapid.IntRange(1, 5).Draw(a.rt, "points") {
		a.put(o)
	}
	for range rapid.IntRange(0, 5).Draw(a.rt, "relations") {
		a.relate(o)
	}
}

func (a *adversary) put(o *tenant) {
	kind := a.kind("kind")
	in := a.input(o, kind, a.id("id"))
	var got Stored
	a.try("put", o, func() (err error) {
		got, err = a.store(o, in)
		return err
	}, func(n *naive) (bool, loci.Code) {
		r := pointRef{kind, in.ID}
		there := n.points[r] != nil
		state, code := n.put(in)
		want := Stored{ID: in.ID, Vector: state}
		if p := n.points[r]; p != nil {
			want.Version = p.version
		}
		if code == "" && got != want {
			a.rt.Fatalf("put gives %+v, want %+v", got, want)
		}
		// Something that has expired is removed on the way, which is a change.
		return there || !in.removes() || a.revisionMoved(n), code
	})
}

// revisionMoved says that something was written, which the model does not mind: what
// has expired was still there.
func (a *adversary) revisionMoved(n *naive) bool { return n.revision != a.before }

func (a *adversary) putUnique(o *tenant) {
	in := a.input(o, loci.KindFact, a.id("id"))
	in.ExpectedRevision = nil
	preferred := in.ID
	var got Stored
	a.try("put unique", o, func() error {
		r, err := o.facts.PutUnique(a.ctx(), in.fact())
		got, err = receipt(a, r, err)
		return err
	}, func(n *naive) (bool, loci.Code) {
		if code := n.wrong(in); code != "" {
			return false, code
		}
		if in.removes() {
			return false, ""
		}
		c := *in
		if n.points[pointRef{loci.KindFact, preferred}] != nil {
			id, sure := n.free(loci.KindFact)
			if c.ID = id; !sure {
				if c.ID = got.ID; n.points[pointRef{loci.KindFact, c.ID}] != nil {
					a.rt.Fatalf("put unique took %d, which is there", c.ID)
				}
			}
		}
		_, code := n.put(&c)
		if code == "" && got.ID != c.ID {
			a.rt.Fatalf("put unique of %d takes %d, want %d", preferred, got.ID, c.ID)
		}
		return true, code
	})
}

func (a *adversary) putBatch(o *tenant) {
	kind := rapid.SampledFrom([]loci.Kind{loci.KindFact, loci.KindEpisode}).Draw(a.rt, "kind")
	ins := make([]*naiveInput, rapid.IntRange(0, 4).Draw(a.rt, "entries"))
	var facts []FactInput
	var episodes []EpisodeInput
	for i := range ins {
		ins[i] = a.input(o, kind, a.id("id"))
		facts, episodes = append(facts, ins[i].fact()), append(episodes, ins[i].episode())
	}
	var got BatchResult
	a.try("put batch", o, func() error {
		var r *loci.Receipt[BatchResult]
		var err error
		if kind == loci.KindFact {
			r, err = o.facts.PutBatch(a.ctx(), FactBatch{Facts: facts})
		} else {
			r, err = o.episodes.RecordBatch(a.ctx(), EpisodeBatch{Episodes: episodes})
		}
		got, err = receipt(a, r, err)
		return err
	}, func(n *naive) (changed bool, code loci.Code) {
		for _, in := range ins {
			if code := n.wrong(in); code != "" {
				return false, code
			}
		}
		var want BatchResult
		for i, in := range ins {
			if slices.ContainsFunc(ins[i+1:], func(later *naiveInput) bool { return later.ID == in.ID }) {
				want.Replaced++
				continue
			}
			changed = changed || !in.removes() || n.points[pointRef{kind, in.ID}] != nil
			state, code := n.put(in)
			switch {
			case code != "":
				return false, code
			case in.removes():
				want.Removed++
			default:
				want.Stored++
			}
			switch state {
			case VectorMade:
				want.Made++
			case VectorPending:
				want.Pending++
			}
		}
		if got != want {
			a.rt.Fatalf("put batch gives %+v, want %+v", got, want)
		}
		return changed || a.revisionMoved(n), ""
	})
}

func (a *adversary) update(o *tenant) {
	kind := a.kind("kind")
	r := pointRef{kind, a.there(o, kind, "id")}
	updates, raw := a.metadata("updates")
	req := UpdateRequest{ID: r.id, Updates: raw}
	var content *string
	if a.odds(3, "content") {
		content = new(a.text())
		if len(updates) == 0 {
			req.Updates = loci.Metadata(fmt.Sprintf(`{"content":%q}`, *content))
		} else {
			req.Updates = append(req.Updates[:len(req.Updates)-1:len(req.Updates)-1], fmt.Sprintf(`,"content":%q}`, *content)...)
		}
	}
	if a.odds(6, "expects") {
		req.ExpectedRevision = new(a.expected(o, r))
	}
	var got Stored
	a.try("update", o, func() error {
		res, err := o.of(kind).UpdateMetadata(a.ctx(), req)
		got, err = receipt(a, res, err)
		return err
	}, func(n *naive) (bool, loci.Code) {
		changed, code := n.update(r, updates, content, req.ExpectedRevision)
		if p := n.points[r]; code == "" && (got != Stored{ID: r.id, Version: p.version, Vector: p.state(n)}) {
			a.rt.Fatalf("update gives %+v, want version %d and a vector %s", got, p.version, p.state(n))
		}
		return changed, code
	})
}

func (a *adversary) ttl(o *tenant) {
	kind := a.kind("kind")
	r := pointRef{kind, a.there(o, kind, "id")}
	var seconds *uint64
	if !a.odds(4, "for ever") {
		seconds = new(rapid.SampledFrom([]uint64{0, 1, 5, 30, 1 << 63, 1<<64 - 1}).Draw(a.rt, "seconds"))
	}
	a.try("ttl", o, func() error {
		var res *loci.Receipt[Stored]
		var err error
		if seconds == nil {
			res, err = o.of(kind).ClearTTL(a.ctx(), r.id)
		} else {
			res, err = o.of(kind).SetTTL(a.ctx(), TTLRequest{ID: r.id, TTLSeconds: *seconds})
		}
		_, err = receipt(a, res, err)
		return err
	}, func(n *naive) (bool, loci.Code) { return n.setTTL(r, seconds) })
}

func (a *adversary) remove(o *tenant) {
	kind := a.kind("kind")
	r := pointRef{kind, a.there(o, kind, "id")}
	there := o.n.points[r] != nil
	a.try("delete", o, func() error {
		res, err := o.of(kind).Delete(a.ctx(), r.id)
		got, err := receipt(a, res, err)
		if err == nil && got != there {
			a.rt.Fatalf("deleted %v: %v", r, got)
		}
		return err
	}, func(n *naive) (bool, loci.Code) {
		n.drop(r)
		return there, ""
	})
}

func (a *adversary) clear(o *tenant) {
	kind := a.kind("kind")
	var got int64
	a.try("clear", o, func() error {
		res, err := o.of(kind).Clear(a.ctx())
		got, err = receipt(a, res, err)
		return err
	}, func(n *naive) (bool, loci.Code) {
		want := n.clear(kind)
		if got != want {
			a.rt.Fatalf("cleared %d, want %d", got, want)
		}
		return want > 0 || a.revisionMoved(n), ""
	})
}

func (a *adversary) relType() string {
	return rapid.SampledFrom([]string{"a", "A", RelSupersedes}).Draw(a.rt, "type")
}

func (a *adversary) relate(o *tenant) {
	from, to := a.kind("from kind"), a.kind("to kind")
	e := edgeRef{pointRef{from, a.there(o, from, "from")}, a.relType(), pointRef{to, a.there(o, to, "to")}}
	properties, raw := a.metadata("properties")
	if strings.Contains(string(raw), reservedPrefix) { // which are as good as others here
		properties["_loci_x"] = "1"
	}
	var got Edge
	if a.try("relate", o, func() error {
		res, err := o.of(from).Relate(a.ctx(), RelateRequest{From: e.from.id, To: e.to.id, ToKind: to, Type: e.typ, Properties: raw})
		got, err = receipt(a, res, err)
		return err
	}, func(n *naive) (bool, loci.Code) { return n.relate(e, properties) }) {
		a.isEdge(o, e, &got)
	}
}

func (a *adversary) unrelate(o *tenant) {
	known := slices.SortedFunc(maps.Keys(o.ids), compareEdges)
	id := loci.PointID(7)
	var e edgeRef
	if len(known) > 0 && !a.odds(6, "unknown") {
		e = rapid.SampledFrom(known).Draw(a.rt, "relation")
		id = o.ids[e]
	}
	there := o.n.edges[e] != nil
	a.try("unrelate", o, func() error {
		res, err := o.of(a.kind("asked")).Unrelate(a.ctx(), id)
		got, err := receipt(a, res, err)
		if err == nil && got != there {
			a.rt.Fatalf("unrelated %v: %v", e, got)
		}
		return err
	}, func(n *naive) (bool, loci.Code) {
		delete(n.edges, e)
		return there, ""
	})
}

func (a *adversary) supersede(o *tenant) {
	req := SupersedeRequest{Old: a.there(o, loci.KindFact, "old"), New: a.there(o, loci.KindFact, "new"), FromUS: a.maybeTime("when")}
	var got Superseded
	a.try("supersede", o, func() error {
		res, err := o.facts.Supersede(a.ctx(), req)
		got, err = receipt(a, res, err)
		return err
	}, func(n *naive) (bool, loci.Code) {
		want, changed, code := n.supersede(req.Old, req.New, req.FromUS)
		if want.EdgeID = got.EdgeID; code == "" && got != want {
			a.rt.Fatalf("supersede gives %+v, want %+v", got, want)
		}
		return changed, code
	})
}

func (a *adversary) reinforce(o *tenant) {
	req := ReinforceRequest{ID: a.there(o, loci.KindProcedure, "id"), Success: a.bool("success")}
	req.Strategy.Kind = rapid.SampledFrom([]StrategyKind{"", StrategyFixed, StrategyDiminishing, StrategyTemporal, StrategyWeighted}).Draw(a.rt, "strategy")
	if req.Strategy.Kind == StrategyWeighted {
		req.Strategy.Weights = map[StrategyKind]float64{StrategyFixed: 1, StrategyDiminishing: 3, StrategyTemporal: 0.5}
	}
	if a.odds(6, "expects") {
		req.ExpectedRevision = new(a.expected(o, pointRef{loci.KindProcedure, req.ID}))
	}
	a.try("reinforce", o, func() error {
		res, err := o.procedures.ReinforceWith(a.ctx(), req)
		_, err = receipt(a, res, err)
		return err
	}, func(n *naive) (bool, loci.Code) {
		return true, n.reinforce(req.ID, req.Success, req.Strategy, req.ExpectedRevision)
	})
}

func (a *adversary) setPolicy(o *tenant) {
	var p Policy
	if a.bool("consolidates") {
		p.ConsolidateAfterSeconds = new(rapid.SampledFrom([]int64{1, 86_400}).Draw(a.rt, "age"))
	}
	if a.bool("evicts") {
		p.EvictBelowConfidence = new(rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(a.rt, "below"))
	}
	if a.bool("keeps") {
		p.KeepVersions = new(rapid.IntRange(0, 2).Draw(a.rt, "versions"))
	}
	if a.bool("snapshots") {
		p.MaxSnapshots = new(rapid.IntRange(1, 2).Draw(a.rt, "most"))
	}
	r, err := o.SetPolicy(a.ctx(), p)
	_, err = receipt(a, r, err)
	a.ok(err)
	o.n.policy = p
}

func (a *adversary) autoExpire(o *tenant) {
	if a.bool("another policy") {
		a.setPolicy(o)
	}
	if a.bool("later") {
		a.move(5 * second)
		a.tick()
	}
	n := o.n.clone()
	consolidated, evicted, ok := n.autoExpire()
	if !ok {
		return
	}
	got, err := o.AutoExpire(a.ctx())
	a.ok(err)
	if got.Consolidated != consolidated || got.Evicted != evicted || got.Truncated {
		a.rt.Fatalf("auto_expire did %+v, want %d consolidated and %d evicted", got, consolidated, evicted)
	}
	o.n = n
}
