package embedded

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// vecHit is a row on its way to becoming a hit.
type vecHit struct {
	score float32
	row   uint32
	run   uint32 // of nearest.runs
	id    int64
}

// before says whether a ranks above o: by score, then by lower id.
func (a *vecHit) before(o *vecHit) bool {
	if a.score != o.score {
		return a.score > o.score
	}
	return a.id < o.id
}

// vecTop keeps the k best rows in a heap whose root is the worst of them.
type vecTop struct {
	k    int
	heap []vecHit
}

func (t *vecTop) full() bool { return len(t.heap) >= t.k }

func (t *vecTop) add(h vecHit) {
	if !t.full() {
		t.heap = append(t.heap, h)
		for i := len(t.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.heap[up].before(&t.heap[i]) {
				break
			}
			t.heap[up], t.heap[i] = t.heap[i], t.heap[up]
			i = up
		}
		return
	}
	if t.k == 0 || !h.before(&t.heap[0]) {
		return
	}
	t.heap[0] = h
	for i := 0; ; {
		worst := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(t.heap) && t.heap[worst].before(&t.heap[down]) {
				worst = down
			}
		}
		if worst == i {
			return
		}
		t.heap[i], t.heap[worst] = t.heap[worst], t.heap[i]
		i = worst
	}
}

// run is a partition's share of one segment or of one tail, as a search sees it.
type run struct {
	kind   *nearKind
	number uint32 // in nearest.runs
	form   rowForm
	ids    []int64
	scopes []uint32
	scales []float32
	sorted bool // ids ascend, or part has them in that order

	seg  vecSegView // of a segment
	part *vecPart   // nil for a tail

	codes   []byte // of a tail
	fine    []byte
	deleted []*deleteStamps
	rev     int64
}

func (r *run) dead(row uint32) bool {
	if r.part != nil {
		return r.seg.del.has(r.part.lo + row)
	}
	d := r.deleted[row/stampChunk][row%stampChunk].Load()
	return d != 0 && d <= r.rev
}

// clean says that no row of the run is dead, as far as that costs nothing to
// know.
func (r *run) clean() bool { return r.part != nil && r.seg.del.count == 0 }

// read gives the codes of the rows from..to.
func (r *run) read(from, to uint32) ([]byte, error) {
	if r.part != nil {
		return r.seg.readCodes(r.part, from, to-from)
	}
	n := uint32(r.form.stride())
	return r.codes[uint64(from)*uint64(n) : uint64(to)*uint64(n)], nil
}

// readFine gives what the codes of a row leave of its vector.
func (r *run) readFine(row uint32) ([]byte, error) {
	if r.part != nil {
		return r.seg.readFine(r.part, row)
	}
	n := uint64(r.form.fineStride())
	return r.fine[uint64(row)*n : uint64(row+1)*n], nil
}

// byID are the ids of a sorted run, ascending.
func (r *run) byID() []int64 {
	if r.part != nil {
		return r.part.sortedIDs
	}
	return r.ids
}

// find gives the live row of a record. hint is where to begin to look among the
// ids in ascending order, guess where the id may be; next is where a later id may
// begin.
func (r *run) find(id int64, hint, guess int) (row uint32, next int, ok bool) {
	ids := r.byID()
	i := guess
	// There may be two of an id, one behind the other.
	if uint(i) >= uint(len(ids)) || ids[i] != id || i > 0 && ids[i-1] == id {
		i = hint + seek(ids[hint:], id)
	}
	if r.part != nil {
		row, ok = r.part.liveAt(i, id, r.seg.del)
		return row, i, ok
	}
	if i < len(ids) && ids[i] == id && !r.dead(uint32(i)) {
		return uint32(i), i, true
	}
	return 0, i, false
}

// slope guesses where ids stand that were handed out evenly. Other than one search
// that begins where the last one ended, guesses do not wait for each other.
type slope struct {
	first int64
	per   float64
}

func newSlope(ids []int64) (s slope) {
	if n := len(ids); n > 1 {
		s.first, s.per = ids[0], float64(n-1)/float64(ids[n-1]-ids[0])
	}
	return s
}

// at may lie outside of the ids.
func (s *slope) at(id int64) int { return int(math.Round(float64(id-s.first) * s.per)) }

// seek gives the first place in ids, which ascend, whose id is not below id. Ids
// are often handed out evenly, so it begins with a guess.
func seek(ids []int64, id int64) int {
	n := len(ids)
	if n == 0 || id <= ids[0] {
		return 0
	}
	if id > ids[n-1] {
		return n
	}
	// In floats, since the product may overflow; the guess may be off.
	lo := int(float64(id-ids[0]) / float64(ids[n-1]-ids[0]) * float64(n-1))
	lo = min(max(lo, 0), n-1)
	hi := lo
	step := 8
	for hi < n && ids[hi] < id {
		lo, hi = hi, hi+step
		step *= 2
	}
	hi = min(hi, n)
	step = 8
	for lo > 0 && ids[lo] >= id {
		hi, lo = lo, lo-step
		step *= 2
	}
	lo = max(lo, 0)
	i, _ := slices.BinarySearch(ids[lo:hi], id)
	return lo + i
}

// scanBlock is how many rows are scored together.
const scanBlock = 512

// scanner scores rows against a query and keeps the best.
type scanner struct {
	values []float32
	codedQuery
	top     vecTop
	wanted  greatest // the best scores of rows that pass, as many as must not be missed
	sure    sureTop  // with Certain, in the place of top
	outlook outlook

	sums   [scanBlock]int32
	scores [scanBlock]float32
	rows   [scanBlock]uint32
}

const (
	// spareHits and spareShare are how many rows are scored by all codes beyond what
	// is wanted, a fixed number and one in so many, since codes alone put rows that
	// lie close together in a wrong order.
	spareHits  = 10
	spareShare = 2
)

func (s *scanner) reset(q *index.VectorQuery) {
	s.values = q.Values
	s.encode(q.Values)
	limit := max(q.Limit, 0)
	want := limit
	if q.Want > 0 {
		want = min(want, q.Want)
	}
	s.top.k = max(limit, want+want/spareShare+spareHits)
	s.top.heap = s.top.heap[:0]
	s.wanted.reset(want)
	s.outlook.end()
	s.sure.reset(q, &s.codedQuery)
}

// denseShare is the share of rows that have to pass for all to be scored, and
// only the best of them tested, rather than the other way round.
const denseShare = 0.4

// scan offers the rows from..to, and gives about how many of them pass.
func (s *scanner) scan(r *run, from, to uint32) (passed float64, err error) {
	f := &r.kind.filter
	share := f.share()
	dense := share >= denseShare
	for ; from < to; from += scanBlock {
		n := min(to-from, scanBlock)
		if dense {
			if err := s.score(r, from, from+n); err != nil {
				return passed, err
			}
			if s.outlook.on {
				s.outlook.learn(s.scores[:n])
			}
			if s.sure.on {
				s.offerSure(r, from, n)
			} else {
				s.offer(r, from, n)
			}
			passed += share * float64(n)
			continue
		}
		rows := f.choose(s.rows[:0], r, from, from+n)
		if !r.clean() {
			rows = slices.DeleteFunc(rows, r.dead)
		}
		passed += float64(len(rows))
		if err := s.scanRows(r, rows); err != nil {
			return passed, err
		}
	}
	return passed, nil
}

// offer offers rows whose scores are there, those that pass and are live.
func (s *scanner) offer(r *run, from, n uint32) {
	f := &r.kind.filter
	all, clean := f.all(), r.clean()
	need := s.need()
	for i, score := range s.scores[:n] {
		if !(score >= need) {
			continue
		}
		if row := from + uint32(i); (clean || !r.dead(row)) && (all || f.pass(r, row)) {
			s.keep(r, row, score)
			need = s.need()
		}
	}
}

// keep offers a row that passes and is live.
func (s *scanner) keep(r *run, row uint32, score float32) {
	s.top.add(vecHit{score, row, r.number, r.ids[row]})
	s.wanted.add(score)
}

// need is the score that a row must reach to be worth offering.
func (s *scanner) need() float32 {
	if !s.top.full() {
		return -3
	}
	if s.top.k == 0 {
		return 3
	}
	return s.top.heap[0].score
}

// score scores the rows from..to, at most scanBlock of them.
func (s *scanner) score(r *run, from, to uint32) error {
	data, err := r.read(from, to)
	if err != nil {
		return err
	}
	n := to - from
	if r.form.encoding == index.EncodingF32 {
		vec.ScanFloat32(s.values, column[float32](data), r.form.stride()/4, s.scores[:n])
		return nil
	}
	vec.ScanInt8(s.codes, codesOf(data), r.form.stride(), s.sums[:n])
	scales := r.scales[from:to]
	for i, sum := range s.sums[:n] {
		s.scores[i] = float32(sum) * scales[i] * s.scale
	}
	return nil
}

// scanRows offers live rows that pass.
func (s *scanner) scanRows(r *run, rows []uint32) error {
	for part := range slices.Chunk(rows, scanBlock) {
		if err := s.gather(r, part); err != nil {
			return err
		}
		if s.outlook.on {
			s.outlook.learn(s.scores[:len(part)])
		}
		if s.sure.on {
			for i, score := range s.scores[:len(part)] {
				s.sure.add(r, part[i], score)
			}
			continue
		}
		need := s.need()
		for i, score := range s.scores[:len(part)] {
			if score >= need {
				s.keep(r, part[i], score)
				need = s.need()
			}
		}
	}
	return nil
}

// gather scores rows in any order.
func (s *scanner) gather(r *run, rows []uint32) error {
	stride := r.form.stride()
	data := r.codes
	if r.part != nil {
		// Rows that follow each other share their blocks, so this costs little.
		for _, row := range rows {
			at := r.part.codes + uint64(row)*uint64(stride)
			if err := r.seg.verify(at, at+uint64(stride)); err != nil {
				return err
			}
		}
		data = r.seg.codes[r.part.codes : r.part.codes+uint64(r.part.n)*uint64(stride)]
	}
	if r.form.encoding == index.EncodingF32 {
		for i, row := range rows {
			vec.ScanFloat32(s.values, column[float32](data[int(row)*stride:int(row+1)*stride]), stride/4, s.scores[i:i+1])
		}
		return nil
	}
	vec.GatherInt8(s.codes, codesOf(data), stride, rows, s.sums[:len(rows)])
	for i, row := range rows {
		s.scores[i] = float32(s.sums[i]) * r.scales[row] * s.scale
	}
	return nil
}
