package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// clock is a clock that stands until it is set. The store's background reads it too.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// exampleMemory opens a memory of vectors of three numbers in a new store, whose
// clock stands at the beginning of 2026, and gives what removes it again.
func exampleMemory(ctx context.Context) (memory *agent.AgentMemory, at *clock, remove func()) {
	dir, err := os.MkdirTemp("", "loci-example-*")
	if err != nil {
		log.Fatal(err)
	}
	at = &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	db, err := loci.Open(ctx, dir, &loci.Options{Clock: at.Now})
	if err != nil {
		log.Fatal(err)
	}
	if memory, err = agent.Open(ctx, db, agent.Config{Dimension: 3}); err != nil {
		log.Fatal(err)
	}
	return memory, at, func() {
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}

// One screen: open a store and a memory, store two facts with vectors of the
// caller's own, ask.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "loci-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := loci.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	memory, err := agent.Open(ctx, db, agent.Config{Dimension: 3})
	if err != nil {
		log.Fatal(err)
	}
	facts := memory.Semantic()
	if err := facts.Store(ctx, 7, "The tide table is updated weekly.", []float32{1, 0, 0}); err != nil {
		log.Fatal(err)
	}
	if err := facts.Store(ctx, 8, "The ferry leaves at nine.", []float32{0, 1, 0}); err != nil {
		log.Fatal(err)
	}
	hits, err := facts.Query(ctx, []float32{0.8, 0.6, 0}, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Printf("%d %.1f %s\n", h.ID, h.Score, h.Content)
	}
	// Output:
	// 7 0.8 The tide table is updated weekly.
	// 8 0.6 The ferry leaves at nine.
}

// By words no vector is needed.
func ExampleSemanticMemory_QueryText() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	for id, text := range []string{"The ferry leaves at nine.", "灯塔每晚七点点灯"} {
		if err := facts.Store(ctx, loci.PointID(id), text, []float32{1, 0, 0}); err != nil {
			log.Fatal(err)
		}
	}
	for _, text := range []string{"leaving ferries", "灯塔"} {
		found, err := facts.QueryText(ctx, agent.TextRequest{Text: text})
		if err != nil {
			log.Fatal(err)
		}
		for _, h := range found.Hits {
			fmt.Println(h.ID, h.Content)
		}
	}
	// Output:
	// 0 The ferry leaves at nine.
	// 1 灯塔每晚七点点灯
}

// A filter leaves only facts that meet it, before the best are taken. Numbers are
// compared as numbers, however they are written.
func ExampleSemanticMemory_QueryFiltered() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	for id, metadata := range []string{`{"pier":1}`, `{"pier":2}`, `{"pier":2.0}`} {
		vector := []float32{1, float32(id), 0}
		if err := facts.StoreWithMetadata(ctx, loci.PointID(id), "berth "+metadata, vector, loci.Metadata(metadata)); err != nil {
			log.Fatal(err)
		}
	}
	hits, err := facts.QueryFiltered(ctx, []float32{1, 0, 0}, 10, loci.Metadata(`{"pier":2}`), 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range hits {
		fmt.Printf("%d %.3f %s\n", h.ID, h.Score, h.Content)
	}
	// Output:
	// 1 0.707 berth {"pier":2}
	// 2 0.447 berth {"pier":2.0}
}

// What has expired is gone from every answer at once, and a clock that is put back
// does not bring it back.
func ExampleSemanticMemory_StoreWithTTL() {
	ctx := context.Background()
	memory, at, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	if err := facts.StoreWithTTL(ctx, 1, "The gate code is 4711.", []float32{1, 0, 0}, 3600); err != nil {
		log.Fatal(err)
	}
	for _, passed := range []time.Duration{0, time.Hour, -24 * time.Hour} {
		at.set(at.now.Add(passed))
		n, err := facts.Count(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n.Count)
	}
	// Output:
	// 1
	// 0
	// 0
}

// A fact takes the place of another. Both stay: queries give the one that holds at
// the time that they ask about.
func ExampleSemanticMemory_Supersede() {
	ctx := context.Background()
	memory, at, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	if err := facts.Store(ctx, 1, "The harbour master is Ann.", []float32{1, 0, 0}); err != nil {
		log.Fatal(err)
	}
	before := at.now.UnixMicro()
	at.set(at.now.AddDate(0, 6, 0))
	if err := facts.Store(ctx, 2, "The harbour master is Bo.", []float32{1, 0, 0}); err != nil {
		log.Fatal(err)
	}
	if _, err := facts.Supersede(ctx, agent.SupersedeRequest{Old: 1, New: 2}); err != nil {
		log.Fatal(err)
	}
	for _, when := range []*int64{nil, &before} {
		found, err := facts.QueryHits(ctx, agent.QueryRequest{Embedding: []float32{1, 0, 0}, Selection: agent.Selection{AsOfValidUS: when}})
		if err != nil {
			log.Fatal(err)
		}
		for _, h := range found.Hits {
			fmt.Println(h.Content)
		}
	}
	// Output:
	// The harbour master is Bo.
	// The harbour master is Ann.
}

// Relations lead from point to point, across the kinds. Match finds them by type,
// by one end or none, and by what is said of the far end.
func ExampleSemanticMemory_Match() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	if err := facts.Store(ctx, 1, "The crane is out of order.", []float32{1, 0, 0}); err != nil {
		log.Fatal(err)
	}
	if _, err := memory.Episodic().Record(ctx, agent.EpisodeInput{PointInput: agent.PointInput{ID: 1, Tags: []string{"storm"}}, Description: "A gale hit pier two."}); err != nil {
		log.Fatal(err)
	}
	if _, err := facts.Relate(ctx, agent.RelateRequest{From: 1, Type: "because of", To: 1, ToKind: loci.KindEpisode}); err != nil {
		log.Fatal(err)
	}
	found, err := facts.Match(ctx, agent.MatchRequest{Type: "because of", Selection: agent.Selection{Tags: []string{"storm"}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range found.Matches {
		fmt.Printf("%s %d %s %s %d: %s\n", m.FromKind, m.From, m.Type, m.ToKind, m.To, m.Content)
	}
	// Output:
	// fact 1 because of episode 1: A gale hit pier two.
}

// Every version of a point is kept for a while, and can be asked for by the time at
// which it was believed.
func ExampleSemanticMemory_History() {
	ctx := context.Background()
	memory, at, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	for _, text := range []string{"Low tide is at two.", "Low tide is at three."} {
		if err := facts.Store(ctx, 1, text, []float32{1, 0, 0}); err != nil {
			log.Fatal(err)
		}
		at.set(at.now.Add(time.Minute))
	}
	history, err := facts.History(ctx, agent.PointRequest{ID: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range history.Versions {
		fmt.Println(v.Version, v.Content)
	}
	then := at.now.Add(-90 * time.Second).UnixMicro()
	found, err := facts.Get(ctx, agent.GetRequest{ID: 1, AsOfRecordedUS: &then})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("then:", found.Point.Content)
	// Output:
	// 2 Low tide is at three.
	// 1 Low tide is at two.
	// then: Low tide is at two.
}

// What happened last.
func ExampleEpisodicMemory_Recent() {
	ctx := context.Background()
	memory, at, remove := exampleMemory(ctx)
	defer remove()
	episodes := memory.Episodic()
	for id, text := range []string{"The pilot came aboard.", "The hold was opened.", "The crane stopped."} {
		when := at.now.Add(time.Duration(id) * time.Hour).UnixMicro()
		if _, err := episodes.Record(ctx, agent.EpisodeInput{PointInput: agent.PointInput{ID: loci.PointID(id)}, Description: text, AtUS: &when}); err != nil {
			log.Fatal(err)
		}
	}
	recent, err := episodes.Recent(ctx, agent.RecentRequest{Limit: new(2)})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range recent.Items {
		fmt.Println(time.UnixMicro(e.AtUS).UTC().Format(time.TimeOnly), e.Description)
	}
	// Output:
	// 02:00:00 The crane stopped.
	// 01:00:00 The hold was opened.
}

// A conversation comes in as episodes; the same file again changes nothing.
func ExampleEpisodicMemory_ImportFrom() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	const talk = `{"thread":"desk","role":"user","content":"When is low tide?"}
{"thread":"desk","role":"assistant","content":"At three."}
`
	for range 2 {
		report, err := memory.Episodic().ImportFrom(ctx, strings.NewReader(talk), agent.ImportRequest{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Value.Stored, "stored,", report.Value.Unchanged, "unchanged")
	}
	// Output:
	// 2 stored, 0 unchanged
	// 0 stored, 2 unchanged
}

// A procedure gains confidence when it served and loses some when it did not.
func ExampleProceduralMemory_ReinforceWith() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	procedures := memory.Procedural()
	if _, err := procedures.Learn(ctx, agent.ProcedureInput{PointInput: agent.PointInput{ID: 1}, Name: "moor a ship", Steps: []string{"throw the line", "belay it"}}); err != nil {
		log.Fatal(err)
	}
	for _, success := range []bool{true, true, false} {
		served, err := procedures.ReinforceWith(ctx, agent.ReinforceRequest{ID: 1, Success: success, Strategy: agent.Strategy{Kind: agent.StrategyDiminishing}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.3f after %d\n", served.Value.Confidence, served.Value.Uses)
	}
	// Output:
	// 0.600 after 1
	// 0.691 after 2
	// 0.649 after 3
}

// Episodes that are old enough become facts, by the policy.
func ExampleAgentMemory_AutoExpire() {
	ctx := context.Background()
	memory, at, remove := exampleMemory(ctx)
	defer remove()
	if _, err := memory.SetPolicy(ctx, agent.Policy{ConsolidateAfterSeconds: new(int64(30 * 86_400))}); err != nil {
		log.Fatal(err)
	}
	if _, err := memory.Episodic().Record(ctx, agent.EpisodeInput{PointInput: agent.PointInput{ID: 5}, Description: "The crane stopped."}); err != nil {
		log.Fatal(err)
	}
	at.set(at.now.AddDate(0, 2, 0))
	done, err := memory.AutoExpire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fact, err := memory.Semantic().Get(ctx, agent.GetRequest{ID: 5})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Consolidated, fact.Point.Content)
	// Output:
	// 1 The crane stopped.
}

// A snapshot is a checked file; restoring it replaces the whole memory at once.
func ExampleAgentMemory_RestoreLatest() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	facts := memory.Semantic()
	if err := facts.Store(ctx, 1, "Low tide is at two.", []float32{1, 0, 0}); err != nil {
		log.Fatal(err)
	}
	taken, err := memory.Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := facts.Clear(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := memory.RestoreLatest(ctx); err != nil {
		log.Fatal(err)
	}
	n, err := facts.Count(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", taken.Version, "holds", taken.Facts, "fact; restored:", n.Count)
	// Output:
	// version 1 holds 1 fact; restored: 1
}

// The facts of one memory as a stream, for another one of the same dimension.
func ExampleSemanticMemory_Serialize() {
	ctx := context.Background()
	memory, _, remove := exampleMemory(ctx)
	defer remove()
	if err := memory.Semantic().Store(ctx, 1, "Low tide is at two.", []float32{1, 0, 0}); err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := memory.Semantic().Serialize(ctx, &file); err != nil {
		log.Fatal(err)
	}
	other, _, removeOther := exampleMemory(ctx)
	defer removeOther()
	restored, err := other.Semantic().Deserialize(ctx, &file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(restored.Value.Facts)
	// Output:
	// 1
}
