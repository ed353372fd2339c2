package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/pager"
	"github.com/loci-memory/loci/pager/tiktoken"
)

// SessionReport is a simulated session of an agent. It is an estimate: what is
// counted are the bytes that the hosts would have sent, and what providers would
// bill is reckoned from them, see SessionAssumptions.
type SessionReport struct {
	Simulated bool `json:"simulated"` // always true
	Budget    int  `json:"budget"`    // bytes
	Steps     int  `json:"steps"`
	// Waits says that the replacement policy knows the provider and waits while its
	// cache is warm.
	Waits         bool         `json:"waits"`
	BytesPerToken float64      `json:"bytes_per_token"` // of all the texts sent, by o200k_base
	Hosts         []HostReport `json:"hosts"`
	// Resent is what of the stable prefix had to be sent again, by what the step
	// did.
	Resent []ResentReport `json:"resent"`
	// InWindow is the share of the five best hits for a step's question that are in
	// Loci's window; the other hosts have them by the way they are made.
	InWindow  float64      `json:"in_window"`
	Evictions int64        `json:"evictions"`
	Faults    int64        `json:"faults"` // pages that came back within three turns of their eviction
	Deferred  int          `json:"deferred"`
	Bills     []BillReport `json:"bills"`
}

// HostReport says how a host's text changed from step to step.
type HostReport struct {
	Host      string  `json:"host"`
	Bytes     float64 `json:"bytes"`     // of the text, mean
	Unchanged int     `json:"unchanged"` // steps at which the text was the one before
	Common    float64 `json:"common"`    // share of the text that the one before begins with, mean over steps
}

// ResentReport counts what of the stable prefix was sent again.
type ResentReport struct {
	Steps  string `json:"steps"` // what they did
	Count  int    `json:"count"`
	Breaks int    `json:"breaks"` // steps at which the prefix did not stay as it was
	Bytes  int    `json:"bytes"`  // of the prefix that were sent again
}

// BillReport is what one provider would bill one host.
type BillReport struct {
	Profile string `json:"profile"`
	Matches string `json:"matches"` // how it was reckoned
	Host    string `json:"host"`
	Before  int    `json:"host_prefix_tokens"` // of the host's own stable text before the context
	Marked  bool   `json:"end_marked"`         // there is a breakpoint at the end of the text as well, which was cheaper
	Input   int    `json:"input_tokens"`
	Read    int    `json:"cache_read_tokens"`
	Write   int    `json:"cache_write_tokens"`
	// HitRate is the tokens read from the cache over all, Cost the price over that
	// without a cache, and Paid the price in tokens of input.
	HitRate float64 `json:"hit_rate"`
	Cost    float64 `json:"cost"`
	Paid    float64 `json:"paid_tokens"`
}

// SessionAssumptions says what the simulation takes for granted.
func SessionAssumptions() []string {
	return []string{
		fmt.Sprintf("an agent made up from a seed: %d steps, one every %s, four to a turn, a new task every 12 to 20 steps; texts of pseudo-words", sessionSteps, sessionStepTime),
		"it writes a tool result at 60 % of the steps, its plan at 15 %, recalls at 15 % and when a task begins, adds an outline row every 8 steps, pins a page at 3 %, edits its goal with every third task, and folds seldom",
		"a request is the host's own stable text (3,000 tokens, as a coding agent has, or none), the context, and 150 fresh tokens; output and the chat behind it are left out, being the same for all hosts",
		"Loci sends prefix and tail as two blocks, with a breakpoint behind the prefix; \"Loci by page\" sends every working page as a block of its own",
		"the naive hosts fill the same budget anew at every step with what a search for the step's question finds, in order of relevance, one of them behind the same pinned pages and rows",
		"each host marks the end of its text or not, whichever is cheaper over the session",
		"cost is the price over that of the same tokens without a cache; what is paid depends on the length of the text as well, and Loci's is shorter after evictions",
		"tokens are those of o200k_base for every provider; caches drop nothing before its time and every request meets the machine that has it; automatic ones reuse the longest common prefix in steps of 128 tokens, which is more than DeepSeek promises",
	}
}

// The names of the hosts.
const (
	hostLoci   = "Loci"
	hostBlocks = "Loci by page"
	hostNaive  = "naive"
	hostPinned = "naive, pins first"
)

// sessionMessage is how many tokens of a request nobody shares.
const sessionMessage = 150

// window is what a host sends at a step, in the parts that it may send as blocks.
type hostWindow struct {
	blocks [][]byte
	mark   int // this block has a breakpoint behind it
	end    int // and this one, where the end is marked
}

func (w *hostWindow) text() []byte { return bytes.Join(w.blocks, nil) }

// sessionLog is what a session leaves: every host's window at every step.
type sessionLog struct {
	hosts  []string
	window map[string][]hostWindow
}

func (r *contextRun) sessions() error {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		return err
	}
	tokens := newLineCounter(counter)
	for _, s := range []struct {
		budget int
		waits  bool
	}{{8192, false}, {8192, true}, {32768, false}, {32768, true}} {
		r.say("a session of %d steps in %d bytes (waiting while the cache is warm: %t)", r.steps, s.budget, s.waits)
		out := SessionReport{Simulated: true, Budget: s.budget, Steps: r.steps, Waits: s.waits}
		now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
		var log *sessionLog
		err := r.withStore(func() time.Time { return now }, func(db *loci.DB) (err error) {
			a := &simulated{contextRun: r, db: db, out: &out, now: &now, random: newRandom(r.Seed, 1<<48)}
			log, err = a.run()
			return err
		})
		if err != nil {
			return err
		}
		if err := out.reckon(log, tokens); err != nil {
			return err
		}
		r.report.Sessions = append(r.report.Sessions, out)
	}
	return nil
}

// reckon says what the windows of a session have in common and what providers
// would bill.
func (out *SessionReport) reckon(log *sessionLog, tokens *lineCounter) error {
	sentBytes, sentTokens := 0, 0
	for _, host := range log.hosts {
		h := HostReport{Host: host}
		var before []byte
		for i, w := range log.window[host] {
			text := w.text()
			h.Bytes += float64(len(text))
			sentBytes, sentTokens = sentBytes+len(text), sentTokens+tokens.count(text)
			if i > 0 {
				if bytes.Equal(before, text) {
					h.Unchanged++
				}
				h.Common += ratio(float64(render.Common(before, text)), float64(len(text)))
			}
			before = text
		}
		n := float64(len(log.window[host]))
		h.Bytes, h.Common = ratio(h.Bytes, n), ratio(h.Common, n-1)
		out.Hosts = append(out.Hosts, h)
	}
	out.BytesPerToken = ratio(float64(sentBytes), float64(sentTokens))
	for _, p := range pager.Profiles() {
		for _, before := range []int{sessionHostTokens, 0} {
			for _, host := range log.hosts {
				b, marked, err := cheapest(log.window[host], before, &p, tokens)
				if err != nil {
					return err
				}
				out.Bills = append(out.Bills, BillReport{
					Profile: p.ID, Matches: matchingOf(&p).String(), Host: host, Before: before, Marked: marked,
					Input: b.input, Read: b.read, Write: b.write,
					HitRate: b.hitRate(), Cost: ratio(b.cost(&p), float64(b.total())), Paid: b.cost(&p),
				})
			}
		}
	}
	return nil
}

// cheapest bills a host's windows with the end marked and without.
func cheapest(windows []hostWindow, before int, p *pager.Profile, tokens *lineCounter) (best bill, marked bool, err error) {
	for i, end := range []bool{false, true} {
		if end && matchingOf(p) == byLongestPrefix {
			break // it has no breakpoints
		}
		cache := newPromptCache(p, tokens.count)
		var now time.Time
		var sum bill
		for j := range windows {
			b, err := cache.send(windows[j].request(before, end, tokens), now)
			if err != nil {
				return best, false, err
			}
			sum.add(b)
			now = now.Add(sessionStepTime)
		}
		if i == 0 || sum.cost(p) < best.cost(p) {
			best, marked = sum, end
		}
	}
	return best, marked, nil
}

// request lays a window out behind the host's own text.
func (w *hostWindow) request(before int, end bool, tokens *lineCounter) *request {
	r := &request{fresh: sessionMessage}
	if before > 0 {
		r.blocks = append(r.blocks, block{text: []byte("the host's own text"), tokens: before, mark: true})
	}
	for i, text := range w.blocks {
		r.blocks = append(r.blocks, block{text: text, tokens: tokens.count(text), mark: i == w.mark || end && i == w.end})
	}
	return r
}

// lociWindow is the window in two blocks, lociBlocks in one for each working
// page.
func lociWindow(prefix, tail string) hostWindow {
	return hostWindow{blocks: [][]byte{[]byte(prefix), []byte(tail)}, mark: 0, end: 1}
}

func lociBlocks(prefix, tail string) hostWindow {
	lines := render.SplitLines([]byte(tail))
	// The last line closes the text, so that the mark before it finds it grown.
	return hostWindow{blocks: append([][]byte{[]byte(prefix)}, lines...), mark: 0, end: len(lines) - 1}
}

// naiveWindow fills the budget with items in the order given, behind core lines.
func naiveWindow(core [][]byte, items []render.Item, budget int) hostWindow {
	var working [][]byte
	for i := range items {
		line := render.AppendItem(nil, &items[i])
		if size, _ := render.Size(core, append(working, line)); size <= budget {
			working = append(working, line)
		}
	}
	text, stable := render.Append(nil, core, working)
	if len(core) == 0 {
		return hostWindow{blocks: [][]byte{text}, mark: -1, end: 0}
	}
	return hostWindow{blocks: [][]byte{text[:stable], text[stable:]}, mark: 0, end: 1}
}

// coreLines are the items of a rendered prefix.
func coreLines(prefix string) (lines [][]byte) {
	for line := range strings.Lines(prefix) {
		if line = strings.TrimSuffix(strings.TrimPrefix(line, ","), "\n"); strings.HasPrefix(line, `{"id":`) {
			lines = append(lines, []byte(line))
		}
	}
	return lines
}

// resent counts what of the prefix was sent again at a step.
func (out *SessionReport) resent(kind string, before, now *pager.PrefixResult) {
	i := slices.IndexFunc(out.Resent, func(x ResentReport) bool { return x.Steps == kind })
	if i < 0 {
		i = len(out.Resent)
		out.Resent = append(out.Resent, ResentReport{Steps: kind})
	}
	x := &out.Resent[i]
	x.Count++
	// The prefix of before ends with a line, so that all of it is common or not.
	text := []byte(now.Prefix + now.Tail)
	if lost := len(before.Prefix) - render.Common([]byte(before.Prefix), text); lost > 0 {
		x.Breaks++
		x.Bytes += lost
	}
}
