package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
)

// batchSize is how many records go into one write.
const batchSize = 250

// storyBegin is when the corpus is said to have been remembered. A fixed time
// makes what the demonstration shows of feedback and decay the same each run.
var storyBegin = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

// Options tune Run.
type Options struct {
	// Out takes the report.
	Out io.Writer
	// Color marks matches and headings with terminal colours.
	Color bool
	// Dir is the data directory to make and keep. Empty means a temporary one
	// that is removed at the end.
	Dir string
	// Progress is told how many of the records are loaded; nil means that Out
	// gets a line now and then.
	Progress func(done, total int)
	// Model finds by meaning; nil leaves that part out.
	Model *Model
}

// Run loads the corpus into a store, asks it the questions and shows the
// answers with their reasons, then what a filter, a merge, feedback and decay
// do, and how long it took.
func Run(ctx context.Context, o Options) (err error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "loci-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	db, err := loci.Open(ctx, dir, &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	health, err := db.Health(ctx)
	if err != nil {
		return err
	}
	if health.RecordCount > 0 {
		return fmt.Errorf("demo: the data directory already holds %d records; name an empty one", health.RecordCount)
	}

	t := &tour{ctx: ctx, db: db, Options: o, screen: &screen{w: o.Out, color: o.Color}, ids: map[string]loci.ID{}}
	for _, step := range []func() error{t.load, t.ask, t.thread, t.filters, t.merge, t.lifecycle, t.graph, t.notes, t.meaning, t.timings} {
		if err := step(); err != nil {
			return err
		}
	}
	if o.Dir != "" {
		t.para("The store is kept. Its data directory is " + db.Directory() + ".")
	}
	return t.err
}

// tour is one run of the demonstration.
type tour struct {
	Options
	*screen
	ctx context.Context
	db  *loci.DB

	ids       map[string]loci.ID // by corpus id
	questions []Question
	loaded    time.Duration
}

func (t *tour) load() error {
	var batch []loci.MemoryInput
	var ids []string
	total, langs, threads := 0, map[string]int{}, map[string]bool{}
	var records []Record
	for r, err := range Records() {
		if err != nil {
			return err
		}
		records = append(records, r)
		langs[metaOf(loci.Metadata(r.Metadata)).Lang]++
		if r.Thread != "" {
			threads[r.Thread] = true
		}
	}
	total = len(records)

	t.title("A memory in two languages")
	t.para(fmt.Sprintf("%s records of real text, %s English and %s Chinese, %d threads: Hamlet speech by speech, Shakespeare's sonnets, "+
		"the Analects, Mencius, Tang poems, a book of aphorisms, the Universal Declaration of Human Rights.",
		count(total), count(langs["en"]), count(langs["zh"]), len(threads)))

	done := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		receipt, err := t.db.Memories().UpsertMany(t.ctx, batch)
		if err != nil {
			return err
		}
		for i, m := range receipt.Value {
			t.ids[ids[i]] = m.ID
		}
		done += len(batch)
		batch, ids = batch[:0], ids[:0]
		if t.Progress != nil {
			t.Progress(done, total)
		} else if done == total || done%(4*batchSize) == 0 {
			t.line("  loaded %s of %s", count(done), count(total))
		}
		return nil
	}
	begin := time.Now()
	for n, r := range records {
		in, err := r.input(storyBegin.Add(time.Duration(n) * time.Second).UnixMicro())
		if err != nil {
			return err
		}
		batch, ids = append(batch, in), append(ids, r.ID)
		if len(batch) == batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	t.loaded = time.Since(begin)
	return nil
}

// request turns a question into a search.
func (q Question) request() loci.SearchRequest {
	req := loci.SearchRequest{Query: q.Query, Limit: new(3), Explain: true}
	req.Filter.Tags = q.Tags
	if q.Thread != "" {
		req.Filter.Thread = new(q.Thread)
	}
	return req
}

func (t *tour) ask() error {
	questions, err := Questions()
	if err != nil {
		return err
	}
	t.questions = questions
	t.title("Questions")
	t.para("Each hit shows its text score and where it stands. Under the first: the round of the search that found it, and the terms of the question that it holds with their BM25 scores. A hit of an earlier round is raised above all of a later one. A tick marks what the question was looking for.")
	found := 0
	for n, q := range questions {
		result, err := t.db.Search(t.ctx, q.request())
		if err != nil {
			return err
		}
		t.question(n+1, q)
		wanted := false
		for i, hit := range result.Hits {
			m, ok := hit.Record.(*loci.Memory)
			if !ok {
				return fmt.Errorf("demo: a search gave a %T", hit.Record)
			}
			right := slices.Contains(q.Want, metaOf(m.Metadata).CorpusID)
			wanted = wanted || right
			t.hit(hit, m, right, i == 0)
		}
		if wanted {
			found++
		}
	}
	t.line("")
	t.line("  %d of %d questions found what they were looking for among three hits.", found, len(questions))
	return nil
}

func (t *tour) thread() error {
	t.title("The thread around a hit")
	result, err := t.db.Search(t.ctx, loci.SearchRequest{Query: "alas, poor Yorick", Limit: new(1)})
	if err != nil {
		return err
	}
	if len(result.Hits) == 0 {
		return errors.New("demo: Yorick is gone")
	}
	center, _ := result.Hits[0].Record.(*loci.Memory)
	if center == nil || center.Position == nil {
		return errors.New("demo: the hit stands in no thread")
	}
	t.para(fmt.Sprintf("A search for %q leads to one speech; its thread %q holds what was said before and after.", "alas, poor Yorick", center.Thread))
	page, err := t.db.Memories().List(t.ctx, loci.PageRequest{
		Filter: loci.ReadFilter{Thread: new(center.Thread)}, Limit: new(loci.MaxPage),
	})
	if err != nil {
		return err
	}
	for i := range page.Items {
		m := &page.Items[i]
		if m.Position != nil && *m.Position >= *center.Position-3 && *m.Position <= *center.Position+2 {
			t.speech(m, m.ID == center.ID)
		}
	}
	return nil
}

func (t *tour) filters() error {
	t.title("A filter at work")
	const query, chinese = "love and death", "爱与死"
	t.para(fmt.Sprintf("%q, asked of everything and of three parts, the last time in Chinese. A filter acts before the hits are cut to the number asked for, so a narrow one still gives full answers.", query))
	for _, c := range []struct {
		name   string
		query  string
		filter loci.ReadFilter
	}{
		{"everything", query, loci.ReadFilter{}},
		{"tag ophelia", query, loci.ReadFilter{Tags: []string{"ophelia"}}},
		{"thread hamlet 3.1", query, loci.ReadFilter{Thread: new("hamlet 3.1")}},
		{"metadata lang = zh", chinese, loci.ReadFilter{Where: []loci.Condition{{Key: "lang", Op: loci.OpEq, Value: []byte(`"zh"`)}}}},
	} {
		result, err := t.db.Search(t.ctx, loci.SearchRequest{Query: c.query, Filter: c.filter, Limit: new(1), WithTotal: true, Explain: true})
		if err != nil {
			return err
		}
		matches := int64(0)
		if result.Total != nil {
			matches = *result.Total
		}
		t.line("")
		t.line("  %s %s match", t.paint(bold, pad(c.name, 22)), count(int(matches)))
		for _, hit := range result.Hits {
			if m, ok := hit.Record.(*loci.Memory); ok {
				t.hit(hit, m, false, false)
			}
		}
	}
	return nil
}

func (t *tour) merge() error {
	t.title("Remembering the same thing twice")
	t.para("upsert_by_judgment compares the normal form: blanks, letter case and width do not count. The memory keeps its id; tags and metadata are united.")
	id := t.ids["hamlet-0187"]
	before, err := t.db.Memories().Get(t.ctx, id, loci.ReadFilter{})
	if err != nil {
		return err
	}
	receipt, err := t.db.Memories().UpsertByJudgment(t.ctx, loci.MemoryInput{
		RecordInput: loci.RecordInput{Tags: []string{"Proverb"}, Metadata: loci.Metadata(`{"quoted_by":"the demonstration"}`)},
		Judgment:    "Something is ROTTEN in the state   of Ｄenmark.",
		Reasoning:   "Said when an institution seems corrupt.",
	})
	if err != nil {
		return err
	}
	after := receipt.Value
	for _, m := range []*loci.Memory{before, &after} {
		t.line("")
		t.field("id, revision", fmt.Sprintf("%d, %d", m.ID, m.Revision))
		t.field("judgment", m.Judgment)
		t.field("tags", fmt.Sprint(m.Tags))
		t.field("metadata", strings.ReplaceAll(string(m.Metadata), `,"`, `, "`))
	}
	if after.ID != id {
		return fmt.Errorf("demo: the merge made memory %d, want %d", after.ID, id)
	}
	return nil
}

func (t *tour) lifecycle() error {
	const scene = "hamlet 3.1"
	t.title("Feedback and decay")
	t.para(fmt.Sprintf("Three speeches of %s are recalled twice; the first was useful both times, the second once. Four days pass, then one decay pass over the scene.", scene))
	filter := loci.ReadFilter{Thread: new(scene)}
	result, err := t.db.Search(t.ctx, loci.SearchRequest{Query: "death, sleep, heaven and beauty", Filter: filter, Limit: new(3)})
	if err != nil {
		return err
	}
	var ids []loci.ID
	for _, hit := range result.Hits {
		if m, ok := hit.Record.(*loci.Memory); ok {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) != 3 {
		return fmt.Errorf("demo: %d hits in %s, want 3", len(ids), scene)
	}
	now := storyBegin.Add(24 * time.Hour)
	states := func(when string) error {
		t.line("")
		t.line("  %s", t.paint(bold, when))
		for _, id := range ids {
			m, err := t.db.Memories().Get(t.ctx, id, filter)
			if err != nil {
				return err
			}
			t.line("    strength %.1f   useful score %.1f   %s", m.State.Strength, m.State.UsefulScore, clip(m.Judgment, 34))
		}
		return nil
	}
	if err := states("as loaded"); err != nil {
		return err
	}
	for _, useful := range [][]loci.ID{ids[:2], ids[:1]} {
		if _, err := t.db.Memories().Feedback(t.ctx, loci.FeedbackRequest{
			Filter: filter, RecalledIDs: ids, UsefulIDs: useful, NowUS: new(now.UnixMicro()),
		}); err != nil {
			return err
		}
		now = now.Add(time.Hour)
	}
	if err := states("after feedback"); err != nil {
		return err
	}
	report, err := t.db.Memories().Decay(t.ctx, loci.DecayRequest{Filter: filter, AtUS: new(now.Add(4 * 24 * time.Hour).UnixMicro())})
	if err != nil {
		return err
	}
	if err := states("four days later"); err != nil {
		return err
	}
	t.line("")
	t.para(fmt.Sprintf("%d memories of the scene decayed; %d are candidates for retirement. Nothing was deleted.",
		report.Value.Decayed, len(report.Value.RetirementCandidates)))
	return nil
}

// timings asks every question several times over and shows the median.
func (t *tour) timings() error {
	const rounds = 20
	var took []time.Duration
	for range rounds {
		for _, q := range t.questions {
			req := q.request()
			req.Explain = false
			begin := time.Now()
			if _, err := t.db.Search(t.ctx, req); err != nil {
				return err
			}
			took = append(took, time.Since(begin))
		}
	}
	slices.Sort(took)
	t.title("Timings")
	t.field("loading", fmt.Sprintf("%s records in %s, %s records/s, every batch synced to disk",
		count(len(t.ids)), t.loaded.Round(time.Millisecond), count(int(float64(len(t.ids))/t.loaded.Seconds()))))
	t.field("searching", fmt.Sprintf("median %s, 95 %% under %s, over %d searches",
		took[len(took)/2].Round(time.Microsecond), took[len(took)*95/100].Round(time.Microsecond), len(took)))
	return nil
}
