package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// TestWholeMemoryAgainstAModel runs random sequences of everything that can be done
// with memories, on three of them in one store whose clock goes forward, back and by
// leaps, and on models of them. What expires, is restored, consolidated, cleared or
// taken to another store is where the model says, whatever came before.
func TestWholeMemoryAgainstAModel(t *testing.T) {
	runs, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; testing.Short() && runs > 5 && !failed {
			return
		}
		a := newAdversary(t, rt)
		// rapid ends a run that fails by a panic; the store must not stay open.
		defer func() {
			failed = failed || rt.Failed()
			if a.db != nil {
				_ = a.db.Close()
			}
			_ = os.RemoveAll(a.root)
		}()
		rt.Repeat(a.actions())
		a.checkAll()
		a.wantSound()
		a.ok(a.db.Close())
		a.db = nil
	})
}

// tenant is an open memory and its model.
type tenant struct {
	cfg Config
	*AgentMemory
	facts      *SemanticMemory
	episodes   *EpisodicMemory
	procedures *ProceduralMemory

	n   *naive
	ids map[edgeRef]loci.PointID // that its relations had
}

func (o *tenant) of(kind loci.Kind) *points {
	switch kind {
	case loci.KindEpisode:
		return &o.episodes.points
	case loci.KindProcedure:
		return &o.procedures.points
	}
	return &o.facts.points
}

// adversary draws what is done.
type adversary struct {
	t    *testing.T
	rt   *rapid.T
	root string // of all directories of the run

	clock      *testClock
	wall, life int64
	db         *loci.DB
	stores     int
	fake       *fakeembed.Embedder
	words      bool  // the embedder is registered
	failing    bool  // the embedder
	before     int64 // the revision before the call that is tried
	tenants    []*tenant
	files      []*modelFile
}

// modelFile is what Serialize wrote.
type modelFile struct {
	kind loci.Kind
	raw  []byte
	n    *naive
}

// The embedding spaces: one with an embedder, and one of callers' vectors alone.
const (
	wordsSpace = "words"
	givenSpace = "given"
)

func newAdversary(t *testing.T, rt *rapid.T) *adversary {
	root, err := os.MkdirTemp(t.TempDir(), "run")
	if err != nil {
		rt.Fatal(err)
	}
	a := &adversary{t: t, rt: rt, root: root, clock: &testClock{at: T}, wall: T, life: T, fake: fakeembed.New(4)}
	a.tenants = []*tenant{
		{cfg: Config{Namespace: "n", Scope: "s", Dimension: 4, Space: givenSpace}},
		{cfg: Config{Namespace: "n", Scope: "S", Dimension: 4, Space: wordsSpace}},
		{cfg: Config{Namespace: "N", Scope: "s", Dimension: 4, Space: givenSpace}},
	}
	if a.words = a.odds(2, "embedder"); !a.words {
		a.tenants[1].cfg.Space = givenSpace
	}
	for _, o := range a.tenants {
		o.n, o.ids = newNaive(), map[edgeRef]loci.PointID{}
		if o.n.space = o.cfg.Space; o.cfg.Space == wordsSpace {
			o.n.embed = a.embedded
		}
	}
	a.open(func(dir string) (*loci.DB, error) { return loci.Open(t.Context(), dir, quiet(a.clock)) })
	return a
}

// embedded is what the embedder makes of a text at present.
func (a *adversary) embedded(text string) []float32 {
	if a.failing {
		return nil
	}
	return a.fake.Vector(text)
}

func (a *adversary) ctx() context.Context { return a.t.Context() }

func (a *adversary) ok(err error) {
	a.rt.Helper()
	if err != nil {
		a.rt.Fatal(err)
	}
}

// dir is the data directory.
func (a *adversary) dir() string { return filepath.Join(a.root, fmt.Sprint("store ", a.stores)) }

// open opens the store, whoever made it, and the memories.
func (a *adversary) open(open func(dir string) (*loci.DB, error)) {
	a.rt.Helper()
	db, err := open(a.dir())
	a.ok(err)
	a.db = db
	for _, space := range []string{wordsSpace, givenSpace} {
		_, err = db.Embeddings().RegisterSpace(a.ctx(), loci.EmbeddingSpace{ID: space, Model: "fake", Dimension: 4})
		a.ok(err)
	}
	if a.words {
		a.fake.Fail(fakeembed.None) // it is tried before it is taken
		a.ok(db.Embeddings().RegisterEmbedder(a.ctx(), wordsSpace, a.fake, nil))
		a.fail()
	}
	for _, o := range a.tenants {
		o.AgentMemory, err = Open(a.ctx(), db, o.cfg)
		a.ok(err)
		o.facts, o.episodes, o.procedures = o.Semantic(), o.Episodic(), o.Procedural()
	}
	a.tick()
}

// tick tells the models the time, which the store must agree with.
func (a *adversary) tick() {
	a.rt.Helper()
	a.life = max(a.life, a.wall)
	if got := a.tenants[0].link.Clock(); got != a.life {
		a.rt.Fatalf("the clock stands at T + %d us, the model's at T + %d us", got-T, a.life-T)
	}
	for _, o := range a.tenants {
		o.n.now, o.n.wall = a.life, a.wall
		o.n.settle()
	}
}

func (a *adversary) revision() int64 {
	a.rt.Helper()
	h, err := a.db.Health(a.ctx())
	a.ok(err)
	return h.Revision
}

// wantSound fails unless the deep check finds nothing.
func (a *adversary) wantSound() {
	a.rt.Helper()
	h, err := a.db.DeepHealth(a.ctx())
	a.ok(err)
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || !h.IndexUsable || h.IndexedDocuments != h.RecordCount || h.PendingIndexUpdates != 0 {
		a.rt.Fatalf("the store is not sound: %+v", h)
	}
}

// try makes a call on a memory, and then on a copy of its model. Both must come to
// the same. What fails, or has nothing to change, writes nothing; what changes
// something is one transaction.
func (a *adversary) try(what string, o *tenant, call func() error, apply func(n *naive) (changed bool, code loci.Code)) bool {
	a.rt.Helper()
	before := a.revision()
	a.before = before
	err := call()
	after := a.revision()
	n := o.n.clone()
	n.revision = after
	changed, code := apply(n)
	if got := errs.CodeOf(err); got != code || err != nil && code == "" {
		a.rt.Fatalf("%s in %s: error %v, the model's %q", what, o.CollectionName(), err, code)
	}
	if code != "" {
		changed = false
	} else {
		o.n = n
	}
	if !changed && after != before {
		a.rt.Fatalf("%s in %s changes nothing, and the revision goes from %d to %d", what, o.CollectionName(), before, after)
	}
	if changed && after != before+1 {
		a.rt.Fatalf("%s in %s is one change, and the revision goes from %d to %d", what, o.CollectionName(), before, after)
	}
	return code == ""
}

// CollectionName names the memory in messages.
func (o *tenant) CollectionName() string { return o.cfg.Namespace + "/" + o.cfg.Scope }

// receipt checks that a receipt speaks of the revision that a call made.
func receipt[V any](a *adversary, r *loci.Receipt[V], err error) (V, error) {
	a.rt.Helper()
	if err != nil {
		if r != nil {
			a.rt.Fatalf("a receipt %+v beside the error %v", r, err)
		}
		return *new(V), err
	}
	if now := a.revision(); r.Revision != now {
		a.rt.Fatalf("the receipt names the revision %d, the store is at %d", r.Revision, now)
	}
	return r.Value, nil
}

func (a *adversary) actions() map[string]func(*rapid.T) {
	on := func(do func(o *tenant)) func(*rapid.T) {
		return func(*rapid.T) {
			// Most is done to one of them, so that much comes together there.
			do(a.tenants[max(0, rapid.IntRange(-5, 2).Draw(a.rt, "memory"))])
			if a.odds(6, "all") {
				a.checkAll()
				return
			}
			for _, o := range a.tenants {
				a.check(o)
			}
		}
	}
	return map[string]func(*rapid.T){
		"put": on(a.put), "furnish": on(a.furnish), "furnish more": on(a.furnish), "put unique": on(a.putUnique), "put batch": on(a.putBatch),
		"update": on(a.update), "ttl": on(a.ttl), "delete": on(a.remove), "clear": on(a.clear), "relate": on(a.relate),
		"relate more": on(a.relate), "unrelate": on(a.unrelate), "supersede": on(a.supersede), "reinforce": on(a.reinforce),
		"set policy": on(a.setPolicy), "auto expire": on(a.autoExpire), "snapshot": on(a.snapshot), "restore": on(a.restore),
		"serialize": on(a.serialize), "deserialize": on(a.deserialize), "pass": on(a.pass), "leap": on(a.pass),
		"sweep": on(a.sweep), "look": on(a.look), "search": on(a.look), "ask": on(a.look), "match": on(a.match), "seldom": on(a.seldom),
	}
}

func (a *adversary) bool(label string) bool { return rapid.Bool().Draw(a.rt, label) }

func (a *adversary) odds(n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(a.rt, label) == n-1
}

// pass moves the clock of the wall.
func (a *adversary) pass(*tenant) {
	by := rapid.SampledFrom([]int64{1, second, 2 * second, 5 * second, 30 * second, day, -1, -second, -3 * second, -day}).Draw(a.rt, "by")
	a.move(by)
	a.tick()
}

func (a *adversary) move(by int64) {
	a.wall += by
	a.clock.Set(a.wall)
	if by > 0 {
		a.life += by
	}
}

func (a *adversary) sweep(*tenant) {
	_, err := a.tenants[0].link.Sweep(a.ctx())
	a.ok(err)
}

// seldom does what concerns the whole store.
func (a *adversary) seldom(*tenant) {
	switch rapid.SampledFrom([]string{"reopen", "reopen damaged", "rebuild", "backup", "export", "embed", "embedder"}).Draw(a.rt, "what") {
	case "reopen":
		a.reopen(func() {})
	case "reopen damaged":
		a.reopen(func() { a.ok(os.RemoveAll(filepath.Join(a.dir(), "index"))) })
	case "rebuild":
		_, err := a.db.RebuildIndexes(a.ctx())
		a.ok(err)
	case "backup":
		a.backup()
	case "export":
		a.export()
	case "embed":
		a.embedPending()
	default:
		a.failing = !a.failing
		a.fail()
	}
	a.checkAll()
}

// fail has the embedder fail, or not.
func (a *adversary) fail() {
	fault := fakeembed.None
	if a.failing {
		fault = fakeembed.Fails
	}
	a.fake.Fail(fault)
}

// whileClosed may set the wall's clock while no store is open.
func (a *adversary) whileClosed() {
	by := rapid.SampledFrom([]int64{0, 0, second, 5 * second, -second, -5 * second, -day}).Draw(a.rt, "meanwhile")
	a.wall += by
	a.clock.Set(a.wall)
}

func (a *adversary) reopen(damage func()) {
	a.rt.Helper()
	a.ok(a.db.Close())
	a.db = nil
	damage()
	a.whileClosed()
	a.open(func(dir string) (*loci.DB, error) { return loci.Open(a.ctx(), dir, quiet(a.clock)) })
}

// elsewhere goes on in another store, which has no snapshots.
func (a *adversary) elsewhere(open func(dir string) (*loci.DB, error)) {
	a.rt.Helper()
	a.ok(a.db.Close())
	a.db = nil
	a.whileClosed()
	a.stores++
	for _, o := range a.tenants {
		o.n.snapshots = map[int64]*naive{}
	}
	a.open(open)
}

func (a *adversary) backup() {
	a.rt.Helper()
	target := filepath.Join(a.root, fmt.Sprint("backup ", a.stores))
	_, err := a.db.Backup(a.ctx(), target)
	a.ok(err)
	a.elsewhere(func(dir string) (*loci.DB, error) { return loci.Restore(a.ctx(), target, dir, quiet(a.clock)) })
}

func (a *adversary) export() {
	a.rt.Helper()
	var out bytes.Buffer
	_, err := a.db.Export(a.ctx(), &out, nil)
	a.ok(err)
	remap := a.bool("remap")
	a.elsewhere(func(dir string) (*loci.DB, error) {
		// A file brings no clock: what had expired stayed behind.
		a.life = a.wall
		db, err := loci.Open(a.ctx(), dir, quiet(a.clock))
		if err != nil {
			return nil, err
		}
		_, err = db.Import(a.ctx(), &out, &loci.ImportOptions{Remap: remap})
		return db, err
	})
	for _, o := range a.tenants {
		for _, p := range o.n.points {
			p.revision = 0
		}
	}
}

// embedPending does what the background would with vectors that are missing.
func (a *adversary) embedPending() {
	a.rt.Helper()
	if a.failing || !a.words {
		return
	}
	_, err := a.db.Embeddings().Sync(a.ctx(), wordsSpace, loci.EmbeddingSyncOptions{})
	a.ok(err)
	for _, o := range a.tenants {
		for _, p := range o.n.points {
			if o.n.embed != nil && p.vector == nil {
				p.vector, p.made = a.embedded(p.text()), true
			}
		}
	}
}

// someIDs are so few that they meet.
func (a *adversary) id(label string) loci.PointID {
	return rapid.SampledFrom([]loci.PointID{1, 2, 3, 0, 1<<64 - 1, 1 << 63}).Draw(a.rt, label)
}

func (a *adversary) kind(label string) loci.Kind {
	return rapid.SampledFrom([]loci.Kind{loci.KindFact, loci.KindFact, loci.KindEpisode, loci.KindProcedure}).Draw(a.rt, label)
}

// there gives the id of a point that is there, or, seldom or where none is, any.
func (a *adversary) there(o *tenant, kind loci.Kind, label string) loci.PointID {
	refs := o.n.refs(kind)
	if len(refs) == 0 || a.odds(6, label+"?") {
		return a.id(label)
	}
	return refs[rapid.IntRange(0, len(refs)-1).Draw(a.rt, label)].id
}

func (a *adversary) serialize(o *tenant) {
	kind := a.kind("kind")
	var out bytes.Buffer
	sum, err := o.of(kind).Serialize(a.ctx(), &out)
	a.ok(err)
	f := &modelFile{kind, out.Bytes(), o.n.frozen()}
	for r := range f.n.points {
		if r.kind != kind {
			delete(f.n.points, r)
		}
	}
	if n := sum.Facts + sum.Episodes + sum.Procedures; int(n) != len(f.n.points) {
		a.rt.Fatalf("%+v of %d points", sum, len(f.n.points))
	}
	a.files = append(a.files[max(0, len(a.files)-3):], f)
}

func (a *adversary) deserialize(o *tenant) {
	if len(a.files) == 0 {
		a.serialize(o)
	}
	f := a.files[rapid.IntRange(0, len(a.files)-1).Draw(a.rt, "file")]
	raw := slices.Clone(f.raw)
	damaged := a.odds(5, "damage")
	if damaged {
		raw[rapid.IntRange(0, len(raw)-1).Draw(a.rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(a.rt, "bit")
		before := a.revision()
		if r, err := o.of(f.kind).Deserialize(a.ctx(), bytes.NewReader(raw)); err == nil || a.revision() != before {
			a.rt.Fatalf("a damaged file gives %+v, %v", r, err)
		}
		return
	}
	r, err := o.of(f.kind).Deserialize(a.ctx(), bytes.NewReader(raw))
	got, err := receipt(a, r, err)
	a.ok(err)
	o.n.replace(f.n, f.kind)
	if n := got.Facts + got.Episodes + got.Procedures; int(n) != len(o.n.refs(f.kind)) || int(got.Expired) != len(f.n.points)-int(n) {
		a.rt.Fatalf("%+v of %d points, %d of them live", got, len(f.n.points), len(o.n.refs(f.kind)))
	}
}

func (a *adversary) snapshot(o *tenant) {
	taken, err := o.Snapshot(a.ctx())
	a.ok(err)
	o.n.lastSnapshot++
	if taken.Version != o.n.lastSnapshot || !taken.OK || int(taken.Facts+taken.Episodes+taken.Procedures) != len(o.n.points) || int(taken.Relations) != len(o.n.edges) {
		a.rt.Fatalf("%+v, want version %d of %d points and %d relations", taken, o.n.lastSnapshot, len(o.n.points), len(o.n.edges))
	}
	o.n.snapshots[taken.Version] = o.n.frozen()
	keep := int64(valueOr(o.n.policy.MaxSnapshots, 10))
	versions := slices.Sorted(mapKeys(o.n.snapshots))
	for _, v := range versions[:max(0, len(versions)-int(keep))] {
		delete(o.n.snapshots, v)
	}
}

func (a *adversary) restore(o *tenant) {
	versions := slices.Sorted(mapKeys(o.n.snapshots))
	version := rapid.Int64Range(1, 3).Draw(a.rt, "version")
	if len(versions) > 0 && !a.odds(5, "any") {
		version = rapid.SampledFrom(versions).Draw(a.rt, "known version")
	}
	call := func() (*loci.Receipt[Restored], error) {
		return o.RestoreVersion(a.ctx(), RestoreRequest{Version: version})
	}
	if a.bool("latest") {
		version = 0
		if len(versions) > 0 {
			version = versions[len(versions)-1]
		}
		call = func() (*loci.Receipt[Restored], error) { return o.RestoreLatest(a.ctx()) }
	}
	before := a.revision()
	r, err := call()
	from := o.n.snapshots[version]
	if from == nil {
		if errs.CodeOf(err) != loci.ErrNotFound || a.revision() != before {
			a.rt.Fatalf("restore %d: %v", version, err)
		}
		return
	}
	got, err := receipt(a, r, err)
	a.ok(err)
	o.n.replace(from, kindsInOrder()...)
	o.n.policy = from.policy
	if n := got.Facts + got.Episodes + got.Procedures; int(n) != len(o.n.points) || int(got.Relations) != len(o.n.edges) ||
		int(got.Expired) != len(from.points)-len(o.n.points) || int(got.DroppedRelations) != len(from.edges)-len(o.n.edges) || got.Version != version {
		a.rt.Fatalf("%+v of %d points and %d relations, %d and %d of them live", got, len(from.points), len(from.edges), len(o.n.points), len(o.n.edges))
	}
}
