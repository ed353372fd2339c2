package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/pager"
)

// What the agent of a simulated session knows and does.
const (
	agentTopics    = 15
	topicWords     = 12
	agentDocuments = 20 // of each topic, known from the beginning
	agentNamespace = "bench-agent"
)

// simulated is a simulated agent with two hosts: one keeps its window by the context
// store, the other fills it by relevance at every step. Both have the same pages.
type simulated struct {
	*contextRun
	db     *loci.DB
	out    *SessionReport
	now    *time.Time
	random *random

	loci, naive *pager.Store
	items       map[string]render.Item // by page id, as a naive host renders them
	version     map[string]int64       // in the context store
	topics      [][]string

	task    []string // the words of the task's topic
	until   int      // the step at which the task ends
	tasks   int
	last    []string // words of the last tool result
	results []string // page ids of tool results
	pinned  []string
	rows    int
	did     sessionStep
}

// sessionStep says what kinds of changes a step made.
type sessionStep struct{ working, appended, rewrote bool }

func (s sessionStep) String() string {
	switch {
	case s.rewrote:
		return "core edited, unpinned or folded"
	case s.appended:
		return "a page pinned or a row added"
	case s.working:
		return "working only"
	}
	return "no operation"
}

func (a *simulated) run() (*sessionLog, error) {
	if err := a.begin(); err != nil {
		return nil, err
	}
	log := &sessionLog{hosts: []string{hostLoci, hostBlocks, hostNaive, hostPinned}, window: map[string][]hostWindow{}}
	var before *pager.PrefixResult
	inWindow, asked := 0, 0
	for step := range a.steps {
		a.did = sessionStep{}
		if err := a.step(step); err != nil {
			return nil, fmt.Errorf("step %d: %w", step, err)
		}
		p, err := a.loci.Prefix(a.ctx, pager.PrefixRequest{})
		if err != nil {
			return nil, err
		}
		if before != nil {
			a.out.resent(a.did.String(), before, p)
		}
		before = p
		found, err := a.found(a.question())
		if err != nil {
			return nil, err
		}
		resident := residentIDs(p.Prefix + p.Tail)
		items := make([]render.Item, 0, len(found))
		for i, id := range found {
			items = append(items, a.items[id])
			if i < 5 {
				asked++
				if slices.Contains(resident, id) {
					inWindow++
				}
			}
		}
		core := coreLines(p.Prefix)
		log.add(hostLoci, lociWindow(p.Prefix, p.Tail))
		log.add(hostBlocks, lociBlocks(p.Prefix, p.Tail))
		log.add(hostNaive, naiveWindow(nil, items, a.out.Budget))
		pinned := slices.DeleteFunc(slices.Clone(items), func(it render.Item) bool { return isCore(core, it.ID) })
		log.add(hostPinned, naiveWindow(core, pinned, a.out.Budget))
		if err := a.tell(step, p.TextBytes); err != nil {
			return nil, err
		}
		*a.now = a.now.Add(sessionStepTime)
	}
	a.out.InWindow = ratio(float64(inWindow), float64(asked))
	m, err := a.loci.Metrics(a.ctx, pager.MetricsRequest{})
	if err != nil {
		return nil, err
	}
	a.out.Evictions, a.out.Faults = m.Totals.Evictions, m.Totals.Faults
	return log, nil
}

func (l *sessionLog) add(host string, w hostWindow) { l.window[host] = append(l.window[host], w) }

func isCore(core [][]byte, id string) bool {
	head := fmt.Sprintf(`{"id":"%s",`, id)
	return slices.ContainsFunc(core, func(line []byte) bool { return strings.HasPrefix(string(line), head) })
}

// begin gives the agent its rules, its goal and what it knows.
func (a *simulated) begin() (err error) {
	if a.loci, err = pager.Open(a.ctx, a.db, pager.Config{Scope: pager.Scope{agentNamespace, "window"}, Budget: &a.out.Budget}); err != nil {
		return err
	}
	if a.naive, err = pager.Open(a.ctx, a.db, pager.Config{Scope: pager.Scope{agentNamespace, "archive"}}); err != nil {
		return err
	}
	policy := pager.SetPolicyRequest{Mode: new("either")}
	if a.out.Waits {
		policy.Provider = new("anthropic-5m")
	}
	if _, err := a.loci.SetPolicy(a.ctx, policy); err != nil {
		return err
	}
	a.items, a.version = map[string]render.Item{}, map[string]int64{}
	for range agentTopics {
		a.topics = append(a.topics, a.topic())
	}
	for _, c := range []struct {
		id   string
		size int
	}{{"rules", min(1200, a.out.Budget/10)}, {"goal", 300}} {
		if err := a.write(c.id, pager.Core, c.id, a.text(a.topics[0], c.size)); err != nil {
			return err
		}
	}
	for t, words := range a.topics {
		for d := range a.documents {
			id := fmt.Sprintf("doc-%02d-%02d", t, d)
			if err := a.write(id, pager.Archive, strings.Join(words[:2], " "), a.text(words, a.size())); err != nil {
				return err
			}
		}
	}
	return a.write("plan", pager.Working, "plan", a.text(a.topics[0], 400))
}

// topic draws the words of a topic: neither the commonest nor rare ones.
func (a *simulated) topic() []string {
	var words []string
	for len(words) < topicWords {
		rank := a.random.between(300, 6000)
		if w := a.corpus.en.words[rank]; !a.corpus.en.function[rank] && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// size is the size of a document or a tool result in bytes.
func (a *simulated) size() int {
	return max(150, min(a.out.Budget/4, int(a.random.logNormal(700, 0.6))))
}

// text makes sentences in which every fifth word is one of the topic.
func (a *simulated) text(topic []string, size int) string {
	var b strings.Builder
	for b.Len() < size {
		if b.Len() > 0 {
			b.WriteByte([]byte(" \n")[a.random.below(4)/3])
		}
		for i := range a.random.between(6, 14) {
			w := a.corpus.en.words[a.corpus.en.ranks.draw(a.random)]
			if a.random.below(5) == 0 {
				w = topic[a.random.below(len(topic))]
			}
			if i == 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			} else {
				b.WriteByte(' ')
			}
			b.WriteString(w)
		}
		b.WriteByte('.')
	}
	return cutText(b.String(), size)
}

// write writes a page for both hosts.
func (a *simulated) write(id string, tier pager.Tier, title, content string) error {
	req := pager.WriteRequest{PageID: id, Tier: tier, Title: title, Content: content}
	if v := a.version[id]; v > 0 {
		req.ExpectedVersion = &v
	}
	return a.send(req)
}

// send sends a write to both stores. For the naive host every page is found the
// same way, so that all of them lie in the archive.
func (a *simulated) send(req pager.WriteRequest) error {
	out, err := write(a.ctx, a.loci, req)
	if err != nil {
		return err
	}
	a.version[req.PageID] = out.Page.Version
	a.items[req.PageID] = render.Item{ID: req.PageID, Version: out.Page.Version, Title: req.Title, Content: req.Content}
	req.Tier, req.Outline = pager.Archive, nil
	_, err = write(a.ctx, a.naive, req)
	return err
}

// step is what the agent does at one step.
func (a *simulated) step(n int) error {
	if n == a.until {
		if err := a.newTask(n); err != nil {
			return err
		}
	}
	if a.chance(60) {
		if err := a.toolResult(n); err != nil {
			return err
		}
	}
	if a.chance(15) {
		a.did.working = true
		if err := a.write("plan", pager.Working, "plan", a.text(a.task, 400)); err != nil {
			return err
		}
	}
	if a.chance(15) {
		if err := a.recall(); err != nil {
			return err
		}
	}
	if a.chance(3) && len(a.results) > 0 {
		if err := a.pin(a.results[len(a.results)-1]); err != nil {
			return err
		}
	}
	if n%8 == 7 {
		if err := a.row(n); err != nil {
			return err
		}
	}
	if n%4 == 3 {
		return a.tick(int64(n / 4))
	}
	return nil
}

func (a *simulated) chance(percent int) bool { return a.random.below(100) < percent }

// newTask begins a task. Every third one comes with another goal.
func (a *simulated) newTask(n int) error {
	a.task, a.until = a.topics[a.random.below(len(a.topics))], n+a.random.between(12, 20)
	if a.tasks++; a.tasks%3 == 0 {
		a.did.rewrote = true
		if err := a.write("goal", pager.Core, "goal", a.text(a.task, 300)); err != nil {
			return err
		}
	}
	return a.recall()
}

func (a *simulated) toolResult(n int) error {
	a.did.working = true
	id := fmt.Sprintf("result-%03d", n)
	content := a.text(a.task, a.size())
	a.results, a.last = append(a.results, id), strings.Fields(content)
	return a.write(id, pager.Working, "tool result "+a.task[a.random.below(topicWords)], content)
}

// question is what the step is about: words of the task and of what was read
// last.
func (a *simulated) question() string {
	words := slices.Clone(a.task[:5])
	for i := range min(3, len(a.last)) {
		words = append(words, a.last[(i*7)%len(a.last)])
	}
	return strings.Join(words, " ")
}

func (a *simulated) recall() error {
	a.did.working = true
	_, err := a.loci.Recall(a.ctx, pager.RecallRequest{SearchRequest: pager.SearchRequest{Query: a.question()}, Publish: new(false)})
	return err
}

// pin pins a page, for which the oldest one that was pinned goes once there are
// four.
func (a *simulated) pin(id string) error {
	if slices.Contains(a.pinned, id) {
		return nil
	}
	if a.pinned = append(a.pinned, id); len(a.pinned) > 4 || a.out.Budget < 16<<10 && len(a.pinned) > 1 {
		a.did.rewrote = true
		if _, err := a.loci.Unpin(a.ctx, pager.UnpinRequest{PageID: a.pinned[0]}); err != nil {
			return err
		}
		a.pinned = a.pinned[1:]
	}
	a.did.appended = true
	_, err := a.loci.PageIn(a.ctx, pager.PageInRequest{PageID: id, Tier: pager.Core})
	return err
}

// row adds a row to the outline, and folds it when it has become long for the
// budget.
func (a *simulated) row(n int) error {
	id := fmt.Sprintf("row-%03d", n)
	a.did.appended = true
	if err := a.send(pager.WriteRequest{PageID: id, Title: fmt.Sprintf("step %d", n), Content: a.text(a.task, 500),
		Summary: a.text(a.task, 80), Outline: new(true)}); err != nil {
		return err
	}
	if a.rows++; a.rows <= min(24, a.out.Budget/700) {
		return nil
	}
	out, err := a.loci.Fold(a.ctx, pager.FoldRequest{Keep: new(a.rows / 2)})
	if err != nil {
		return err
	}
	a.rows = out.Rows
	if a.did.rewrote = a.did.rewrote || out.Changed; out.Deferred {
		a.out.Deferred++
	}
	if m := out.Milestone; m != nil {
		a.version[m.PageID] = m.Version
	}
	return nil
}

// tick tells the policy of a turn.
func (a *simulated) tick(turn int64) error {
	out, err := a.loci.PolicyTick(a.ctx, pager.PolicyTickRequest{TurnID: &turn})
	if err != nil {
		return err
	}
	a.did.working = a.did.working || len(out.Evicted) > 0
	if out.Deferred {
		a.out.Deferred++
	}
	return nil
}

// tell tells the context store of a call of the model, by which it judges the
// provider's cache warm. How the tokens were billed does not matter for that.
func (a *simulated) tell(step, textBytes int) error {
	_, err := a.loci.RecordUsage(a.ctx, pager.RecordUsageRequest{InputTokens: int64(1 + textBytes/4), Step: new(int64(step))})
	return err
}

// found gives the ids of what a search for a question finds in the archive of
// the naive host.
func (a *simulated) found(question string) ([]string, error) {
	out, err := a.naive.Search(a.ctx, pager.SearchRequest{Query: question, Limit: new(50)})
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(out.Results))
	for _, f := range out.Results {
		ids = append(ids, f.PageID)
	}
	return ids, nil
}
