package agent

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
)

// pointRef names a point of a memory.
type pointRef struct {
	kind loci.Kind
	id   loci.PointID
}

func kindsInOrder() []loci.Kind {
	return []loci.Kind{loci.KindFact, loci.KindEpisode, loci.KindProcedure}
}

func compareRefs(a, b pointRef) int {
	order := kindsInOrder()
	return cmp.Or(cmp.Compare(slices.Index(order, a.kind), slices.Index(order, b.kind)), cmp.Compare(a.id, b.id))
}

// edgeRef names a relation of a memory.
type edgeRef struct {
	from pointRef
	typ  string
	to   pointRef
}

// wording is what one version of a point says.
type wording struct {
	version, recorded int64
	name              string
	steps             []string
	content           string            // a fact's or an episode's
	metadata          map[string]string // literals
	from, to          *int64
}

// naivePoint is a point as the cases tell of it. All of its parts are replaced as a
// whole, so that a shallow copy is one for good.
type naivePoint struct {
	wording
	past             []wording // oldest first
	created          int64
	revision         int64 // 0: whatever the next read says
	expires          *int64
	tags             []string
	thread           string
	position         *int64
	at               int64 // an episode's
	vector           []float32
	made             bool // the vector, by an embedder
	confidence       float64
	uses, successes  int64
	lastUsed         *int64
	replacedRecorded []int64 // when the versions of past gave way to the next
}

// naiveRelation is what there is to know of a relation.
type naiveRelation struct {
	created    int64
	properties map[string]string
}

// naive is a whole memory, kept in the plainest way there is.
type naive struct {
	points       map[pointRef]*naivePoint
	edges        map[edgeRef]*naiveRelation
	policy       Policy
	snapshots    map[int64]*naive
	lastSnapshot int64
	embed        func(text string) []float32 // nil: no embedder; it gives nil where it fails
	space        string

	now, wall int64 // the clock of expiry and that of the wall
	revision  int64 // of the write that is going on
}

func newNaive() *naive {
	return &naive{points: map[pointRef]*naivePoint{}, edges: map[edgeRef]*naiveRelation{}, snapshots: map[int64]*naive{}}
}

func (n *naive) clone() *naive {
	c := *n
	c.points, c.edges, c.snapshots = map[pointRef]*naivePoint{}, map[edgeRef]*naiveRelation{}, maps.Clone(n.snapshots)
	for r, p := range n.points {
		c.points[r] = new(*p)
	}
	for e, r := range n.edges {
		c.edges[e] = new(*r)
	}
	return &c
}

// refs are the points of a kind by ascending id; "" is for any kind.
func (n *naive) refs(kind loci.Kind) (out []pointRef) {
	for r := range n.points {
		if kind == "" || r.kind == kind {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, compareRefs)
	return out
}

func (n *naive) drop(r pointRef) {
	delete(n.points, r)
	maps.DeleteFunc(n.edges, func(e edgeRef, _ *naiveRelation) bool { return e.from == r || e.to == r })
}

// settle forgets what has expired.
func (n *naive) settle() {
	for _, r := range n.refs("") {
		if p := n.points[r]; p.expires != nil && *p.expires <= n.now {
			n.drop(r)
		}
	}
}

func (p *naivePoint) current(at int64) bool {
	return (p.from == nil || *p.from <= at) && (p.to == nil || at < *p.to)
}

// text is what an embedder is given of a point.
func (p *naivePoint) text() string {
	if p.name == "" {
		return p.content
	}
	steps := strings.Join(p.steps, "\n")
	if p.name == steps {
		return steps
	}
	return p.name + "\n" + steps
}

func (n *naive) keep() int { return valueOr(n.policy.KeepVersions, 10) }

func expiresIn(now int64, seconds uint64) *int64 {
	if end := float64(now) + float64(seconds)*1e6; end >= math.MaxInt64 {
		return new(int64(math.MaxInt64))
	}
	return new(now + int64(seconds)*second)
}

// revise puts p in the place of what a point says, which becomes its past.
func (n *naive) revise(old, p *naivePoint) {
	p.version, p.recorded = old.version+1, max(n.now, old.recorded)
	p.past = append(slices.Clone(old.past), old.wording)
	p.replacedRecorded = append(slices.Clone(old.replacedRecorded), p.recorded)
	n.trim(p)
	p.revision = n.revision
}

func (n *naive) trim(p *naivePoint) {
	cut := max(0, len(p.past)-n.keep())
	p.past, p.replacedRecorded = p.past[cut:], p.replacedRecorded[cut:]
}

// naiveInput is what a point of any kind is stored with.
type naiveInput struct {
	PointInput
	kind       loci.Kind
	name       string
	steps      []string
	content    string
	metadata   map[string]string
	from, to   *int64
	at         *int64
	confidence *float64
	reset      bool
}

// wrong is why an input is refused whatever is stored.
func (n *naive) wrong(in *naiveInput) loci.Code {
	switch {
	case in.Embedding != nil && len(in.Embedding) != 4:
		return loci.ErrInvalidVector
	case in.Embedding == nil && n.embed == nil && in.kind == loci.KindFact:
		return loci.ErrInvalidVector
	case in.Position != nil && in.Thread == nil, in.from != nil && in.to != nil && *in.to <= *in.from:
		return loci.ErrValidation
	}
	return ""
}

// put stores a point. It says what became of it.
func (n *naive) put(in *naiveInput) (state VectorState, code loci.Code) {
	if code := n.wrong(in); code != "" {
		return "", code
	}
	r := pointRef{in.kind, in.ID}
	old := n.points[r]
	if in.ExpectedRevision != nil && (old == nil || old.revision != *in.ExpectedRevision) {
		return "", loci.ErrStaleRevision
	}
	if in.TTLSeconds != nil && *in.TTLSeconds == 0 {
		n.drop(r)
		return "", ""
	}
	p := &naivePoint{
		wording: wording{version: 1, recorded: n.now, name: in.name, steps: in.steps, content: in.content, metadata: in.metadata, from: in.from, to: in.to},
		tags:    in.Tags, thread: valueOr(in.Thread, ""), position: in.Position, created: n.wall, revision: n.revision, confidence: 0.5,
	}
	if in.TTLSeconds != nil {
		p.expires = expiresIn(n.now, *in.TTLSeconds)
	}
	if n.taken(r, p) {
		return "", loci.ErrConflict
	}
	if old != nil {
		p.created = old.created
		n.revise(old, p)
		if !in.reset {
			p.confidence, p.uses, p.successes, p.lastUsed = old.confidence, old.uses, old.successes, old.lastUsed
		}
	}
	if in.kind == loci.KindEpisode {
		p.at = valueOr(in.at, n.now)
		p.created = p.at
	}
	if in.confidence != nil {
		p.confidence = *in.confidence
	}
	n.points[r] = p
	return n.vectorOf(p, old, in.Embedding), ""
}

// taken says whether another point of the kind stands where p is to stand.
func (n *naive) taken(r pointRef, p *naivePoint) bool {
	for other, o := range n.points {
		if other != r && other.kind == r.kind && p.position != nil && o.position != nil && o.thread == p.thread && *o.position == *p.position {
			return true
		}
	}
	return false
}

// vectorOf gives p, which takes the place of old, its vector.
func (n *naive) vectorOf(p, old *naivePoint, given []float32) VectorState {
	if given != nil {
		p.vector = given
		return VectorGiven
	}
	if n.embed != nil {
		p.vector = n.embed(p.text())
	}
	if p.vector == nil && old != nil && old.made && old.text() == p.text() {
		p.vector = old.vector
	}
	p.made = p.vector != nil
	return p.state(n)
}

// state says where a point's vector comes from.
func (p *naivePoint) state(n *naive) VectorState {
	switch {
	case p.made:
		return VectorMade
	case p.vector != nil:
		return VectorGiven
	case n.embed != nil:
		return VectorPending
	}
	return VectorNone
}

// free is the id above the greatest of a kind; false when there is none above it, and
// any free one may be taken.
func (n *naive) free(kind loci.Kind) (loci.PointID, bool) {
	refs := n.refs(kind)
	greatest := refs[len(refs)-1].id
	return greatest + 1, greatest != math.MaxUint64
}

// sameLiteral says whether two literals are the same value.
func sameLiteral(a, b string) bool { return valueClass(a) == valueClass(b) }

func valueClass(literal string) string {
	for _, class := range valueClasses() {
		if slices.Contains(class, literal) {
			return class[0]
		}
	}
	return literal
}

// valueClasses are the literals that the model knows, those of one value together.
func valueClasses() [][]string {
	return [][]string{{`1`, `1.0`}, {`{"x":1,"y":[1,2]}`, `{"y":[1.0,2],"x":1}`}, {`"1"`}, {`null`}, {`true`}, {`9007199254740993`}, {`9007199254740992`}}
}

// merged is m with updates merged into it, and whether that makes a difference: how a
// value is spelled does not.
func merged(m, updates map[string]string) (map[string]string, bool) {
	out, changed := maps.Clone(m), false
	if out == nil {
		out = map[string]string{}
	}
	for key, literal := range updates {
		old, there := out[key]
		if literal == "null" {
			changed = changed || there
			delete(out, key)
			continue
		}
		changed = changed || !there || !sameLiteral(old, literal)
		out[key] = literal
	}
	return out, changed
}

func (n *naive) update(r pointRef, updates map[string]string, content *string, expected *int64) (changed bool, code loci.Code) {
	old := n.points[r]
	switch {
	case old == nil:
		return false, loci.ErrNotFound
	case expected != nil && *expected != old.revision:
		return false, loci.ErrStaleRevision
	}
	p := *old
	p.metadata, changed = merged(old.metadata, updates)
	if content != nil && r.kind == loci.KindFact && *content != p.content {
		p.content, changed = *content, true
	}
	if !changed {
		return false, ""
	}
	n.revise(old, &p)
	if p.text() != old.text() && (old.made || old.vector == nil) {
		p.vector = nil
		n.vectorOf(&p, nil, nil)
	}
	n.points[r] = &p
	return true, ""
}

func (n *naive) setTTL(r pointRef, seconds *uint64) (changed bool, code loci.Code) {
	p := n.points[r]
	switch {
	case p == nil:
		return false, loci.ErrNotFound
	case seconds == nil:
		changed = p.expires != nil
		p.expires = nil
	case *seconds == 0:
		n.drop(r)
		return true, ""
	default:
		end := expiresIn(n.now, *seconds)
		changed = p.expires == nil || *p.expires != *end
		p.expires = end
	}
	if changed {
		p.revision = n.revision
	}
	return changed, ""
}

func (n *naive) clear(kind loci.Kind) int64 {
	refs := n.refs(kind)
	for _, r := range refs {
		n.drop(r)
	}
	return int64(len(refs))
}

func (n *naive) relate(e edgeRef, properties map[string]string) (changed bool, code loci.Code) {
	if n.points[e.from] == nil || n.points[e.to] == nil {
		return false, loci.ErrNotFound
	}
	r := n.edges[e]
	if r == nil {
		r, changed = &naiveRelation{created: n.wall}, true
		n.edges[e] = r
	}
	if more, differs := merged(r.properties, properties); differs {
		r.properties, changed = more, true
	}
	return changed, ""
}

func (n *naive) supersede(oldID, newID loci.PointID, given *int64) (out Superseded, changed bool, code loci.Code) {
	before, successor := pointRef{loci.KindFact, oldID}, pointRef{loci.KindFact, newID}
	old, fresh := n.points[before], n.points[successor]
	said := edgeRef{successor, RelSupersedes, before}
	switch {
	case oldID == newID:
		return out, false, loci.ErrValidation
	case old == nil || fresh == nil:
		return out, false, loci.ErrNotFound
	}
	from := n.now
	if given != nil {
		from = *given
	} else if n.edges[said] != nil && old.to != nil {
		from = *old.to
	}
	for e := range n.edges {
		if old.to != nil && e.to == before && e.typ == RelSupersedes && e.from.kind == loci.KindFact && e.from != successor && e.from != before {
			return out, false, loci.ErrConflict
		}
	}
	if old.from != nil && from <= *old.from || fresh.to != nil && from >= *fresh.to {
		return out, false, loci.ErrValidation
	}
	if old.to == nil || *old.to > from {
		p := *old
		p.to, changed = &from, true
		n.revise(old, &p)
		n.points[before], old = &p, &p
	}
	if fresh.from == nil {
		p := *fresh
		p.from, changed = &from, true
		n.revise(fresh, &p)
		n.points[successor], fresh = &p, &p
	}
	related, code := n.relate(said, nil)
	return Superseded{Old: oldID, New: newID, ValidToUS: *old.to, ValidFromUS: *fresh.from}, changed || related, code
}

func (n *naive) reinforce(id loci.PointID, success bool, s Strategy, expected *int64) loci.Code {
	p := n.points[pointRef{loci.KindProcedure, id}]
	switch {
	case p == nil:
		return loci.ErrNotFound
	case expected != nil && *expected != p.revision:
		return loci.ErrStaleRevision
	}
	step := -0.05
	if success {
		step = 0.1
	}
	by := func(kind StrategyKind) float64 {
		moved := p.confidence + step
		switch kind {
		case StrategyDiminishing:
			moved = p.confidence + step/(1+0.1*float64(p.uses))
		case StrategyTemporal:
			if p.lastUsed != nil {
				moved = p.confidence + step*math.Pow(2, -math.Max(0, float64(n.now-*p.lastUsed))/float64(30*day))
			}
		}
		return min(max(moved, 0), 1)
	}
	if s.Kind == StrategyWeighted {
		sum, all := 0.0, 0.0
		for kind, w := range s.Weights {
			sum, all = sum+w*by(kind), all+w
		}
		p.confidence = sum / all
	} else {
		p.confidence = by(s.Kind)
	}
	p.uses++
	if success {
		p.successes++
	}
	p.lastUsed, p.revision = new(n.now), n.revision
	return ""
}

// autoExpire does what the policy says. It gives the numbers of episodes that became
// facts and of procedures that went; ok is false when it would have to guess an id.
func (n *naive) autoExpire() (consolidated, evicted int64, ok bool) {
	if n.policy.ConsolidateAfterSeconds != nil {
		var old []pointRef
		for _, r := range n.refs(loci.KindEpisode) {
			if n.points[r].at < n.now-*n.policy.ConsolidateAfterSeconds*second {
				old = append(old, r)
			}
		}
		slices.SortStableFunc(old, func(a, b pointRef) int { return cmp.Compare(n.points[a].at, n.points[b].at) })
		for _, r := range old {
			if !n.becomeFact(r) {
				return 0, 0, false
			}
			consolidated++
		}
	}
	for _, r := range n.refs(loci.KindProcedure) {
		if p := n.points[r]; n.policy.EvictBelowConfidence != nil && p.uses > 0 && p.confidence < *n.policy.EvictBelowConfidence {
			n.drop(r)
			evicted++
		}
	}
	for _, p := range n.points {
		n.trim(p)
	}
	return consolidated, evicted, true
}

func (n *naive) becomeFact(r pointRef) bool {
	episode, fact := n.points[r], pointRef{loci.KindFact, r.id}
	if n.points[fact] != nil {
		id, ok := n.free(loci.KindFact)
		if !ok {
			return false
		}
		fact.id = id
	}
	p := &naivePoint{
		wording: wording{version: 1, recorded: n.now, content: episode.content, metadata: episode.metadata, from: new(episode.at)},
		created: episode.created, expires: episode.expires, tags: episode.tags, thread: episode.thread, position: episode.position,
		vector: episode.vector, made: episode.made, confidence: 0.5,
	}
	if n.taken(fact, p) {
		p.position = nil
	}
	n.points[fact] = p
	moved := func(end pointRef) pointRef {
		if end == r {
			return fact
		}
		return end
	}
	for e, relation := range maps.Clone(n.edges) {
		delete(n.edges, e)
		n.edges[edgeRef{moved(e.from), e.typ, moved(e.to)}] = relation
	}
	n.drop(r)
	return true
}

// frozen is what a snapshot or a file keeps of a memory.
func (n *naive) frozen() *naive {
	c := n.clone()
	c.snapshots = nil
	for _, p := range c.points {
		n.trim(p)
	}
	return c
}

// replace makes the points of kinds those of a frozen memory. twins says that the
// frozen one's relations from points of other kinds are taken too.
func (n *naive) replace(from *naive, kinds ...loci.Kind) {
	old := n.edges
	n.edges = map[edgeRef]*naiveRelation{}
	maps.DeleteFunc(n.points, func(r pointRef, _ *naivePoint) bool { return slices.Contains(kinds, r.kind) })
	for r, p := range from.points {
		if slices.Contains(kinds, r.kind) && (p.expires == nil || *p.expires > n.now) {
			c := *p
			c.revision = 0
			if c.made && n.embed != nil && from.space != n.space {
				c.vector, c.made = nil, false
			}
			n.points[r] = &c
		}
	}
	take := func(edges map[edgeRef]*naiveRelation, which func(edgeRef) bool) {
		for e, r := range edges {
			if which(e) && n.points[e.from] != nil && n.points[e.to] != nil {
				n.edges[e] = new(*r)
			}
		}
	}
	take(old, func(e edgeRef) bool { return !slices.Contains(kinds, e.from.kind) })
	take(from.edges, func(e edgeRef) bool { return slices.Contains(kinds, e.from.kind) || slices.Contains(kinds, e.to.kind) })
}
