package pager

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci"
)

func recallWith(t testing.TB, cs *Store, req RecallRequest) *RecallResult {
	t.Helper()
	out := must[*RecallResult](t)(cs.Recall(t.Context(), req))
	if out.Ranked == nil || out.Admitted == nil || out.Evicted == nil || out.Skipped == nil || out.Degraded == nil || out.Context.Text == nil {
		t.Errorf("something is missing in %+v", out)
	}
	if p := out.Context.Pressure; p.Cost > p.Budget {
		t.Errorf("a recall left the window at %d of %d", p.Cost, p.Budget)
	}
	return out
}

// said puts what a recall did in a line.
func said(out *RecallResult) string {
	ids := func(refs []Reference) string {
		var all []string
		for _, r := range refs {
			all = append(all, r.PageID)
		}
		return strings.Join(all, " ")
	}
	var skipped []string
	for _, s := range out.Skipped {
		skipped = append(skipped, s.PageID+"!"+s.Reason)
	}
	return fmt.Sprintf("%s / %s / %s / %s", names(out.Ranked), ids(out.Admitted), ids(out.Evicted), strings.Join(skipped, " "))
}

func wantSaid(t testing.TB, out *RecallResult, want string) {
	t.Helper()
	if got := said(out); got != want {
		t.Errorf("ranked / admitted / evicted / skipped: %s\nwant %s", got, want)
	}
}

func TestRecall(t *testing.T) {
	cs := openScope(t, Config{Budget: new(1200)})
	put(t, cs, WriteRequest{PageID: "pinned", Title: "lighthouse", Content: "lighthouse", Tier: Core})
	put(t, cs, WriteRequest{PageID: "row", Title: "lighthouse log", Summary: "lighthouse", Content: "the log", Outline: new(true)})
	put(t, cs, WriteRequest{PageID: "best", Title: "oil for the lamp", Content: "The lighthouse burns oil. " + strings.Repeat("o", 150)})
	put(t, cs, WriteRequest{PageID: "huge", Title: "oil", Content: "oil " + strings.Repeat("h", 1500)})
	put(t, cs, WriteRequest{PageID: "resident", Content: "The oil of the lighthouse. " + strings.Repeat("r", 150), Tier: Working})
	put(t, cs, WriteRequest{PageID: "linked", Content: "A barrel in the cellar. " + strings.Repeat("l", 20)})
	put(t, cs, WriteRequest{PageID: "best", Title: "oil for the lamp", Content: "The lighthouse burns oil. " + strings.Repeat("o", 150), Links: []string{"linked"}, ExpectedVersion: new(int64(1))})
	put(t, cs, WriteRequest{PageID: "filler", Content: strings.Repeat("f", 300), Tier: Working})
	before := snapshot(t, cs)
	revision := must[*loci.HealthReport](t)(cs.reg.db.Health(t.Context())).Revision

	out := recallWith(t, cs, RecallRequest{SearchRequest: SearchRequest{Query: "oil lighthouse", Limit: new(10)}})
	wantSaid(t, out, "best resident huge pinned row linked<best / best linked / filler / huge!no_room")
	if s := out.Skipped[0]; s.Bytes != 1504 || s.Cost < 1504+before.StablePrefixBytes || s.Budget != 1200 {
		t.Errorf("%+v", s)
	}
	wantOrder(t, cs, "pinned row | resident best linked")
	if out.Context.Generation != before.Generation+1 || out.Context.StablePrefixBytes != before.StablePrefixBytes || !out.Context.Changed {
		t.Errorf("%+v after %+v", out.Context, before)
	}
	if now := must[*loci.HealthReport](t)(cs.reg.db.Health(t.Context())).Revision; now != revision+1 {
		t.Errorf("a recall took %d transactions", now-revision)
	}
	for _, f := range out.Ranked {
		want := map[string]Tier{"best": Working, "linked": Working, "resident": Working, "pinned": Core, "row": Core, "huge": Archive}[f.PageID]
		if f.Tier != want || f.Hits != 1 {
			t.Errorf("%s is in %s with %d hits", f.PageID, f.Tier, f.Hits)
		}
	}
	last := must[*PrefixResult](t)(cs.Prefix(t.Context(), PrefixRequest{})).Last
	if !last.PrefixIntact || last.Generation != out.Context.Generation {
		t.Errorf("%+v", last)
	}
	checkDeep(t, cs)
}

// TestRecallInRankOrder has no room for all of what is found: what is better
// comes in, and what is there already goes if it is worse.
func TestRecallInRankOrder(t *testing.T) {
	cs := openScope(t, Config{Budget: new(960)})
	text := func(n int, fill string) string {
		return strings.Repeat("tide ", n) + strings.Repeat(fill, 300-5*n)
	}
	put(t, cs, WriteRequest{PageID: "third", Content: text(2, "c"), Tier: Working})
	put(t, cs, WriteRequest{PageID: "second", Content: text(6, "b")})
	put(t, cs, WriteRequest{PageID: "first", Content: text(30, "a")})
	put(t, cs, WriteRequest{PageID: "small", Content: "The tide among a great many of other words that are of no use at all to anybody here."})
	out := recallWith(t, cs, RecallRequest{SearchRequest: SearchRequest{Query: "tide"}})
	if names(out.Ranked) != "first second third small" {
		t.Fatalf("the ranking is %s", names(out.Ranked))
	}
	wantSaid(t, out, "first second third small / first second small / third / third!no_room")
	wantOrder(t, cs, " | first second small")
	// Again: all are there but the one that has no room.
	again := recallWith(t, cs, RecallRequest{SearchRequest: SearchRequest{Query: "tide"}})
	wantSaid(t, again, "first second third small /  /  / third!no_room")
	if again.Context.Generation != out.Context.Generation || *again.Context.Text != *out.Context.Text {
		t.Error("a recall that changed nothing changed the window")
	}
}

// TestRecallNothing finds nothing, in a scope that is new, too.
func TestRecallNothing(t *testing.T) {
	cs := openScope(t, Config{})
	req := RecallRequest{SearchRequest: SearchRequest{Query: "anything"}}
	out := recallWith(t, cs, req)
	if said(out) != " /  /  / " || *out.Context.Text != "{\"vc\":1,\"core\":[\n],\"working\":[\n]}" || out.Context.Generation != 1 {
		t.Errorf("%+v", out)
	}
	put(t, cs, WriteRequest{PageID: "p", Content: "text", Tier: Working})
	out = recallWith(t, cs, req)
	if said(out) != " /  /  / " || !strings.Contains(*out.Context.Text, `"p"`) || out.Context.Generation != 2 {
		t.Errorf("%+v", out)
	}
}

// TestRecallCountsTurns counts turns, until policy_tick does.
func TestRecallCountsTurns(t *testing.T) {
	cs := openScope(t, Config{})
	turn := func() (turn int64) {
		if err := cs.with(t.Context(), "look", func(s *scope) error { turn = s.state.Turn; return nil }); err != nil {
			t.Fatal(err)
		}
		return turn
	}
	req := RecallRequest{SearchRequest: SearchRequest{Query: "anything"}}
	for want := range int64(3) {
		if got := turn(); got != want {
			t.Errorf("turn %d, want %d", got, want)
		}
		recallWith(t, cs, req)
	}
	if err := cs.mutate(t.Context(), "tick", func(c *change) error { c.state.Ticked = true; return nil }, nil); err != nil {
		t.Fatal(err)
	}
	if recallWith(t, cs, req); turn() != 3 {
		t.Errorf("turn %d, want 3", turn())
	}
}

func TestRecallUnpublished(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p", Content: "a lighthouse"})
	before := snapshot(t, cs)
	out := recallWith(t, cs, RecallRequest{SearchRequest: SearchRequest{Query: "lighthouse"}, Publish: new(false)})
	wantSaid(t, out, "p / p /  / ")
	if out.Context.Generation != before.Generation || out.Context.Epoch <= before.Epoch || !strings.Contains(*out.Context.Text, "lighthouse") {
		t.Errorf("%+v after %+v", out.Context, before)
	}
	if now := snapshot(t, cs); now.Generation != before.Generation+1 || now.SHA != out.Context.SHA {
		t.Errorf("%+v", now)
	}
}

// TestRecallRecords brings in records as copies, in the same transaction.
func TestRecallRecords(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n", "s"}, Budget: new(1500)})
	n := new("n")
	small := addMemory(t, db, loci.MemoryInput{Judgment: "The windmill grinds wheat.", RecordInput: loci.RecordInput{Namespace: n}})
	core := addMemory(t, db, loci.MemoryInput{Judgment: "The windmill has four sails.", RecordInput: loci.RecordInput{Namespace: n}})
	big := addMemory(t, db, loci.MemoryInput{Judgment: "A windmill: " + strings.Repeat("b", 2000), RecordInput: loci.RecordInput{Namespace: n}})
	long := strings.Repeat("windmill ", loci.MaxTextBytes/9-1)
	huge := addMemory(t, db, loci.MemoryInput{Judgment: long, Reasoning: long, RecordInput: loci.RecordInput{Namespace: n}})
	id := func(m loci.Memory) string { return fmt.Sprintf("memory:%d", m.ID) }
	pageIn(t, cs, PageInRequest{PageID: id(core), Tier: Core})
	request := RecallRequest{SearchRequest: SearchRequest{Query: "windmill", Limit: new(10), Kinds: []loci.Kind{"page", "memory"}}}
	recalled := func() (admitted string, skipped map[string]string, found map[string]Found, out *RecallResult) {
		out = recallWith(t, cs, request)
		skipped, found = map[string]string{}, map[string]Found{}
		for _, s := range out.Skipped {
			skipped[s.PageID] = s.Reason
		}
		for _, f := range out.Ranked {
			found[f.PageID] = f
		}
		var ids []string
		for _, r := range out.Admitted {
			ids = append(ids, r.PageID)
		}
		return strings.Join(ids, " "), skipped, found, out
	}
	admitted, skipped, found, out := recalled()
	if admitted != id(small) || len(skipped) != 2 || skipped[id(big)] != skipNoRoom || skipped[id(huge)] != skipTooLarge || len(found) != 4 {
		t.Errorf("%s", said(out))
	}
	if f := found[id(small)]; f.Tier != Working || f.Origin == nil || f.Origin.Revision != small.Revision || f.Version != small.Revision {
		t.Errorf("%+v", f)
	}
	if f := found[id(big)]; f.Tier != Archive || f.Bytes != len(big.Judgment) {
		t.Errorf("%+v", f)
	}
	if _, err := cs.Read(t.Context(), ReadRequest{PageID: id(big)}); err == nil {
		t.Error("a record that was skipped got a copy")
	}

	// Both change. The one in working takes the change; core is left alone, so that
	// its prefix stays.
	prefix := *out.Context
	for _, m := range []loci.Memory{small, core} {
		addMemory(t, db, loci.MemoryInput{Judgment: m.Judgment + " Twice a year.", RecordInput: loci.RecordInput{ID: m.ID, Namespace: n}})
	}
	request.Kinds = nil // a copy is a page
	if admitted, _, found, out = recalled(); admitted != "" || out.Context.CoreSHA != prefix.CoreSHA || out.Context.SHA == prefix.SHA {
		t.Errorf("%s", said(out))
	}
	if f := found[id(small)]; f.Origin.Stale || f.Version <= small.Revision || read(t, cs, f.PageID).Content != "The windmill grinds wheat. Twice a year." {
		t.Errorf("%+v", f)
	}
	if f := found[id(core)]; !f.Origin.Stale || f.Version != core.Revision {
		t.Errorf("%+v", f)
	}
	// It grows out of the window: it is skipped, and stays as it was.
	addMemory(t, db, loci.MemoryInput{Judgment: "The windmill. " + strings.Repeat("w", 2000), RecordInput: loci.RecordInput{ID: small.ID, Namespace: n}})
	if _, skipped, found, out = recalled(); skipped[id(small)] != skipNoRoom || !found[id(small)].Origin.Stale || found[id(small)].Tier != Working {
		t.Errorf("%s", said(out))
	}
	// Where its scope is not covered, it is the page that it is.
	request.Scopes = []string{"elsewhere"}
	if _, skipped, found, out = recalled(); len(skipped) != 0 || !found[id(small)].Origin.Stale {
		t.Errorf("%s", said(out))
	}
	checkDeep(t, cs)
}

// runeCounter counts characters and does not say that lines add up.
type runeCounter struct{}

func (runeCounter) ID() string            { return "runes" }
func (runeCounter) Count(text string) int { return utf8.RuneCountInString(text) }

// TestRecallTokens measures the whole text where lines do not add up.
func TestRecallTokens(t *testing.T) {
	cs := openScope(t, Config{Budget: new(300), Counter: runeCounter{}})
	for i := range 9 {
		put(t, cs, WriteRequest{PageID: fmt.Sprint("p", i), Content: strings.Repeat("灯塔", 3+10*i)})
	}
	out := recallWith(t, cs, RecallRequest{SearchRequest: SearchRequest{Query: "灯塔", Limit: new(9)}})
	if len(out.Admitted) == 0 || len(out.Skipped) == 0 || len(out.Admitted)+len(out.Skipped) != 9 || out.Context.Pressure.Unit != UnitTokens {
		t.Errorf("%s", said(out))
	}
	if n := utf8.RuneCountInString(*out.Context.Text); n != out.Context.Pressure.Cost || n > 300 {
		t.Errorf("%d characters, said to be %d", n, out.Context.Pressure.Cost)
	}
	for _, s := range out.Skipped {
		if s.Cost <= 300 {
			t.Errorf("%+v had room", s)
		}
	}
}
