package agent

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

// secret stands in everything that the neighbour of an isolation test has, but for
// its ids, and nowhere else.
const secret = "zugzwang"

// neighbourhood is the neighbour's namespace and scope.
var neighbourhood = Config{Namespace: "n1", Scope: "s1", Dimension: 4}

// settleNeighbour fills a memory with points of all kinds, relations, history,
// snapshots and a policy.
func settleNeighbour(t testing.TB, m *AgentMemory) {
	t.Helper()
	ctx := t.Context()
	text := func(s string) string { return s + " of the " + secret + " lighthouse" }
	common := func(id loci.PointID) PointInput {
		return PointInput{ID: id, Embedding: x(), Metadata: loci.Metadata(fmt.Sprintf(`{"k":1,%q:%q}`, secret, secret)), Tags: []string{"nova", secret},
			Thread: new("talk"), Position: new(int64(id))}
	}
	for id := range loci.PointID(4) {
		for _, version := range []string{"old", "new"} {
			must[*loci.Receipt[Stored]](t)(m.Semantic().Put(ctx, FactInput{PointInput: common(id), Content: text(version)}))
			must[*loci.Receipt[Stored]](t)(m.Episodic().Record(ctx, EpisodeInput{PointInput: common(id), Description: text(version)}))
			must[*loci.Receipt[Stored]](t)(m.Procedural().Learn(ctx, ProcedureInput{PointInput: common(id), Name: text("way"), Steps: []string{text(version)}}))
		}
	}
	for _, s := range []*points{&m.Semantic().points, &m.Episodic().points, &m.Procedural().points} {
		for _, to := range kindsInOrder() {
			must[*loci.Receipt[Edge]](t)(s.Relate(ctx, RelateRequest{From: 1, To: 2, ToKind: to, Type: "knows", Properties: loci.Metadata(fmt.Sprintf(`{"p":%q}`, secret))}))
		}
		must[*loci.Receipt[Edge]](t)(s.Relate(ctx, RelateRequest{From: 1, To: 3, Type: secret}))
		must[*loci.Receipt[Stored]](t)(s.SetTTL(ctx, TTLRequest{ID: 2, TTLSeconds: 1000}))
	}
	must[*loci.Receipt[Superseded]](t)(m.Semantic().Supersede(ctx, SupersedeRequest{Old: 0, New: 1}))
	must[*loci.Receipt[Reinforced]](t)(m.Procedural().Reinforce(ctx, 1, true))
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(ctx, Policy{KeepVersions: new(7), MaxSnapshots: new(2)}))
	for range 3 {
		must[*SnapshotTaken](t)(m.Snapshot(ctx))
	}
}

// probe is a call by which a memory reaches for its neighbour.
type probe struct {
	method string
	call   func(ctx context.Context, m *AgentMemory) (any, error)
}

// probes are calls of everything that a memory can do, about ids that the neighbour
// has. dir is a folder for their files.
func probes(dir string, edge loci.PointID) (out []probe) {
	add := func(method string, call func(ctx context.Context, m *AgentMemory) (any, error)) {
		out = append(out, probe{method, call})
	}
	add("AgentMemory.Policy", func(ctx context.Context, m *AgentMemory) (any, error) { return m.Policy(ctx) })
	add("AgentMemory.Status", func(ctx context.Context, m *AgentMemory) (any, error) { return m.Status(ctx) })
	add("AgentMemory.Snapshots", func(ctx context.Context, m *AgentMemory) (any, error) { return m.Snapshots(ctx) })
	add("AgentMemory.RestoreLatest", func(ctx context.Context, m *AgentMemory) (any, error) { return m.RestoreLatest(ctx) })
	for v := range int64(4) {
		add("AgentMemory.RestoreVersion", func(ctx context.Context, m *AgentMemory) (any, error) {
			return m.RestoreVersion(ctx, RestoreRequest{Version: v})
		})
	}
	ttl := TTLRequest{ID: 2, TTLSeconds: 50}
	add("AgentMemory.SetSemanticTTL", func(ctx context.Context, m *AgentMemory) (any, error) { return m.SetSemanticTTL(ctx, ttl) })
	add("AgentMemory.SetEpisodicTTL", func(ctx context.Context, m *AgentMemory) (any, error) { return m.SetEpisodicTTL(ctx, ttl) })
	add("AgentMemory.SetProceduralTTL", func(ctx context.Context, m *AgentMemory) (any, error) { return m.SetProceduralTTL(ctx, ttl) })
	out = append(out, factProbes()...)
	out = append(out, episodeProbes()...)
	out = append(out, procedureProbes()...)
	for i, of := range []string{"SemanticMemory", "EpisodicMemory", "ProceduralMemory"} {
		out = append(out, pointProbes(of, func(m *AgentMemory) *points {
			return []*points{&m.Semantic().points, &m.Episodic().points, &m.Procedural().points}[i]
		}, dir, edge)...)
	}
	add("AgentMemory.SetPolicy", func(ctx context.Context, m *AgentMemory) (any, error) {
		return m.SetPolicy(ctx, Policy{ConsolidateAfterSeconds: new(int64(1)), EvictBelowConfidence: new(0.9), KeepVersions: new(0), MaxSnapshots: new(1)})
	})
	add("AgentMemory.AutoExpire", func(ctx context.Context, m *AgentMemory) (any, error) { return m.AutoExpire(ctx) })
	add("AgentMemory.Snapshot", func(ctx context.Context, m *AgentMemory) (any, error) { return m.Snapshot(ctx) })
	add("AgentMemory.RestoreLatest", func(ctx context.Context, m *AgentMemory) (any, error) { return m.RestoreLatest(ctx) })
	return out
}

// selections narrow a query to what the neighbour has.
func selections() []Selection {
	return []Selection{{}, {Filter: loci.Metadata(fmt.Sprintf(`{%q:%q}`, secret, secret))}, {Tags: []string{secret}}, {Thread: new("talk")}, {AsOfValidUS: new(T - day)}}
}

func factProbes() (out []probe) {
	add := func(method string, call func(ctx context.Context, s *SemanticMemory) (any, error)) {
		out = append(out, probe{"SemanticMemory." + method, func(ctx context.Context, m *AgentMemory) (any, error) { return call(ctx, m.Semantic()) }})
	}
	mine := FactInput{PointInput: PointInput{ID: 3, Embedding: y(), Thread: new("talk"), Position: new(int64(1))}, Content: "mine"}
	add("Get", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return s.Get(ctx, GetRequest{ID: 1, WithEmbedding: true})
	})
	add("Get", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return s.Get(ctx, GetRequest{ID: 1, AsOfRecordedUS: new(T)})
	})
	add("List", func(ctx context.Context, s *SemanticMemory) (any, error) { return s.List(ctx, ListRequest{}) })
	add("ListAll", func(ctx context.Context, s *SemanticMemory) (any, error) { return s.ListAll(ctx) })
	for _, f := range selections() {
		for _, approximate := range []bool{false, true} {
			add("QueryHits", func(ctx context.Context, s *SemanticMemory) (any, error) {
				return s.QueryHits(ctx, QueryRequest{Embedding: x(), K: new(100), Selection: f, Approximate: approximate})
			})
		}
		add("QueryFiltered", func(ctx context.Context, s *SemanticMemory) (any, error) {
			return s.QueryFiltered(ctx, x(), 100, f.Filter, 0)
		})
		add("QueryText", func(ctx context.Context, s *SemanticMemory) (any, error) {
			return s.QueryText(ctx, TextRequest{Text: "the lighthouse of mine", K: new(100), Selection: f})
		})
	}
	add("Query", func(ctx context.Context, s *SemanticMemory) (any, error) { return s.Query(ctx, x(), 100) })
	add("Supersede", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return s.Supersede(ctx, SupersedeRequest{Old: 1, New: 2})
	})
	add("SetTTLDurable", func(ctx context.Context, s *SemanticMemory) (any, error) { return nil, s.SetTTLDurable(ctx, 2, 9) })
	add("StoreUnique", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return s.StoreUnique(ctx, 1, "mine alone", x())
	})
	add("PutUnique", func(ctx context.Context, s *SemanticMemory) (any, error) { return s.PutUnique(ctx, mine) })
	add("Put", func(ctx context.Context, s *SemanticMemory) (any, error) { return s.Put(ctx, mine) })
	add("PutBatch", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return s.PutBatch(ctx, FactBatch{Facts: []FactInput{mine}})
	})
	add("Store", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return nil, s.Store(ctx, 0, "mine too", x())
	})
	add("StoreWithMetadata", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return nil, s.StoreWithMetadata(ctx, 0, "mine too", x(), loci.Metadata(`{"k":1}`))
	})
	add("StoreWithTTL", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return nil, s.StoreWithTTL(ctx, 2, "mine for long", x(), 1000)
	})
	add("StoreBatch", func(ctx context.Context, s *SemanticMemory) (any, error) {
		return nil, s.StoreBatch(ctx, []FactInput{mine})
	})
	return out
}

func episodeProbes() (out []probe) {
	add := func(method string, call func(ctx context.Context, s *EpisodicMemory) (any, error)) {
		out = append(out, probe{"EpisodicMemory." + method, func(ctx context.Context, m *AgentMemory) (any, error) { return call(ctx, m.Episodic()) }})
	}
	mine := EpisodeInput{PointInput: PointInput{ID: 3, Thread: new("talk"), Position: new(int64(1))}, Description: "mine"}
	add("Get", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.Get(ctx, GetRequest{ID: 1, WithEmbedding: true})
	})
	add("List", func(ctx context.Context, s *EpisodicMemory) (any, error) { return s.List(ctx, ListRequest{}) })
	add("Recent", func(ctx context.Context, s *EpisodicMemory) (any, error) { return s.Recent(ctx, RecentRequest{}) })
	add("OlderThan", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.OlderThan(ctx, OlderThanRequest{BeforeUS: T + day})
	})
	add("Between", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.Between(ctx, BetweenRequest{FromUS: 0, ToUS: T + day})
	})
	add("Last", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.Last(ctx, ThreadRequest{Thread: "talk"})
	})
	for _, f := range selections() {
		add("RecallSimilar", func(ctx context.Context, s *EpisodicMemory) (any, error) {
			return s.RecallSimilar(ctx, RecallRequest{Embedding: x(), Selection: f})
		})
		add("RecallSimilar", func(ctx context.Context, s *EpisodicMemory) (any, error) {
			return s.RecallSimilar(ctx, RecallRequest{Text: "lighthouse of mine", Selection: f})
		})
	}
	add("Record", func(ctx context.Context, s *EpisodicMemory) (any, error) { return s.Record(ctx, mine) })
	add("RecordBatch", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.RecordBatch(ctx, EpisodeBatch{Episodes: []EpisodeInput{mine}})
	})
	talk := line("talk", "1", "a message of mine", T)
	add("ImportFrom", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.ImportFrom(ctx, strings.NewReader(talk), ImportRequest{})
	})
	add("Import", func(ctx context.Context, s *EpisodicMemory) (any, error) {
		return s.Import(ctx, ImportRequest{Path: filepath.Join("testdata", "there is none")})
	})
	return out
}

func procedureProbes() (out []probe) {
	add := func(method string, call func(ctx context.Context, s *ProceduralMemory) (any, error)) {
		out = append(out, probe{"ProceduralMemory." + method, func(ctx context.Context, m *AgentMemory) (any, error) { return call(ctx, m.Procedural()) }})
	}
	add("Get", func(ctx context.Context, s *ProceduralMemory) (any, error) {
		return s.Get(ctx, GetRequest{ID: 1, WithEmbedding: true})
	})
	add("List", func(ctx context.Context, s *ProceduralMemory) (any, error) { return s.List(ctx, ListRequest{}) })
	for _, f := range selections() {
		add("Recall", func(ctx context.Context, s *ProceduralMemory) (any, error) {
			return s.Recall(ctx, ProcedureRecallRequest{Embedding: x(), Selection: f})
		})
		add("Recall", func(ctx context.Context, s *ProceduralMemory) (any, error) {
			return s.Recall(ctx, ProcedureRecallRequest{Text: "lighthouse of mine", Selection: f})
		})
	}
	add("Reinforce", func(ctx context.Context, s *ProceduralMemory) (any, error) { return s.Reinforce(ctx, 2, true) })
	add("ReinforceWith", func(ctx context.Context, s *ProceduralMemory) (any, error) {
		return s.ReinforceWith(ctx, ReinforceRequest{ID: 2})
	})
	add("Learn", func(ctx context.Context, s *ProceduralMemory) (any, error) {
		return s.Learn(ctx, ProcedureInput{PointInput: PointInput{ID: 1, Embedding: y()}, Name: "way of mine", Steps: []string{"go"}})
	})
	return out
}

// pointProbes are calls of what the kinds have in common.
func pointProbes(of string, which func(*AgentMemory) *points, dir string, edge loci.PointID) (out []probe) {
	add := func(method string, call func(ctx context.Context, s *points) (any, error)) {
		out = append(out, probe{of + "." + method, func(ctx context.Context, m *AgentMemory) (any, error) { return call(ctx, which(m)) }})
	}
	var file bytes.Buffer
	files := 0
	for _, id := range []loci.PointID{1, 2} {
		add("GetMetadata", func(ctx context.Context, s *points) (any, error) {
			m, ok, err := s.GetMetadata(ctx, id)
			return []any{m, ok}, err
		})
		add("History", func(ctx context.Context, s *points) (any, error) { return s.History(ctx, PointRequest{ID: id}) })
		add("Relations", func(ctx context.Context, s *points) (any, error) { return s.Relations(ctx, RelationsRequest{ID: id}) })
		add("IncomingRelations", func(ctx context.Context, s *points) (any, error) {
			return s.IncomingRelations(ctx, RelationsRequest{ID: id})
		})
		add("UpdateMetadata", func(ctx context.Context, s *points) (any, error) {
			return s.UpdateMetadata(ctx, UpdateRequest{ID: id, Updates: loci.Metadata(`{"k":2}`)})
		})
		add("ClearTTL", func(ctx context.Context, s *points) (any, error) { return s.ClearTTL(ctx, id) })
		add("SetTTL", func(ctx context.Context, s *points) (any, error) {
			return s.SetTTL(ctx, TTLRequest{ID: id, TTLSeconds: 5})
		})
	}
	add("Count", func(ctx context.Context, s *points) (any, error) { return s.Count(ctx) })
	add("IsEmpty", func(ctx context.Context, s *points) (any, error) { return s.IsEmpty(ctx) })
	add("Match", func(ctx context.Context, s *points) (any, error) { return s.Match(ctx, MatchRequest{Type: "knows"}) })
	add("Match", func(ctx context.Context, s *points) (any, error) {
		return s.Match(ctx, MatchRequest{Type: "knows", From: id(1), To: id(2)})
	})
	add("Relate", func(ctx context.Context, s *points) (any, error) {
		return s.Relate(ctx, RelateRequest{From: 1, To: 2, Type: "knows"})
	})
	add("Unrelate", func(ctx context.Context, s *points) (any, error) { return s.Unrelate(ctx, edge) })
	add("Delete", func(ctx context.Context, s *points) (any, error) { return s.Delete(ctx, 1) })
	add("Serialize", func(ctx context.Context, s *points) (any, error) {
		file.Reset()
		sum, err := s.Serialize(ctx, &file)
		return []any{sum.Facts, sum.Episodes, sum.Procedures, sum.Relations, bytes.Contains(file.Bytes(), []byte(secret)), err}, err
	})
	add("SerializeTo", func(ctx context.Context, s *points) (any, error) {
		files++
		sum, err := s.SerializeTo(ctx, FileRequest{Path: filepath.Join(dir, fmt.Sprint(of, files))})
		return sum.Facts + sum.Episodes + sum.Procedures, err
	})
	add("Deserialize", func(ctx context.Context, s *points) (any, error) {
		return s.Deserialize(ctx, bytes.NewReader(file.Bytes()))
	})
	add("DeserializeFrom", func(ctx context.Context, s *points) (any, error) {
		return s.DeserializeFrom(ctx, FileRequest{Path: filepath.Join(dir, fmt.Sprint(of, files))})
	})
	add("Clear", func(ctx context.Context, s *points) (any, error) { return s.Clear(ctx) })
	add("CollectionName", func(_ context.Context, s *points) (any, error) { return s.Dimension(), nil })
	return out
}

// numbers are what may differ between a store and another: ids and revisions that all
// scopes share, and scores of words, which know how common a word is in a namespace.
var numbers = regexp.MustCompile(`"(score|record_id|revision)":"?[-+.e0-9]+"?`)

// TestIsolation fills a memory and lets others reach for it with everything that a
// memory can do. No answer and no error has a byte of it, and each is what it would
// be were the neighbour not there; nor does any of it name a place. // W1, W2, W3, W5
func TestIsolation(t *testing.T) {
	for _, b := range []Config{
		{Namespace: "n1", Scope: "s2"}, {Namespace: "n2", Scope: "s1"}, {Namespace: "n1", Scope: "S1"}, {Namespace: "N1", Scope: "s1"},
		{Namespace: "n1/s1", Scope: "public"}, {Namespace: "n1", Scope: "s1/facts"}, {Namespace: "n1", Scope: "1/1/7/s1"}, {Namespace: "n1", Scope: `["s1"]`},
	} {
		t.Run(b.Namespace+" "+b.Scope, func(t *testing.T) {
			if testing.Short() && b.Scope != "S1" {
				t.Skip("one of them is enough for races")
			}
			b.Dimension = 4
			clock := &testClock{at: T}
			db, bare := openDB(t, t.TempDir(), clock), openDB(t, t.TempDir(), clock)
			t.Cleanup(func() { db.Close(); bare.Close() })
			theirs := must[*AgentMemory](t)(Open(t.Context(), db, neighbourhood))
			settleNeighbour(t, theirs)
			edge := must[*Edges](t)(theirs.Semantic().Relations(t.Context(), RelationsRequest{ID: 1})).Edges[0].ID
			before := tellAll(t, theirs)
			mine, alone := must[*AgentMemory](t)(Open(t.Context(), db, b)), must[*AgentMemory](t)(Open(t.Context(), bare, b))
			calls, lonely := probes(t.TempDir(), edge), probes(t.TempDir(), edge)
			everythingIsTried(t, calls)
			for range 2 { // in a memory that is new, and in one that has points
				for i, p := range calls {
					got := answer(t, p.call, mine)
					if strings.Contains(got, secret) || strings.Contains(got, `\u0001`) || strings.Contains(got, "\x01") {
						t.Errorf("%s gives %s", p.method, got)
					}
					want := answer(t, lonely[i].call, alone)
					if got, want = numbers.ReplaceAllString(got, `"$1":0`), numbers.ReplaceAllString(want, `"$1":0`); got != want {
						t.Errorf("%s gives %s\nand without a neighbour %s", p.method, got, want)
					}
				}
				clock.Set(clock.Now().UnixMicro() + second)
			}
			if after := tellAll(t, theirs); after != before {
				t.Errorf("the neighbour is %s\nand was %s", after, before)
			}
			h := must[*loci.HealthReport](t)(db.DeepHealth(t.Context()))
			if h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
				t.Errorf("%+v", h)
			}
		})
	}
}

// everythingIsTried fails for a method that no probe calls.
func everythingIsTried(t *testing.T, calls []probe) {
	t.Helper()
	// These tell what was asked for when the memory was opened.
	quiet := []string{"Dimension", "Space", "Namespace", "Scope", "Kind", "CollectionName", "Semantic", "Episodic", "Procedural"}
	for _, of := range []any{&AgentMemory{}, &SemanticMemory{}, &EpisodicMemory{}, &ProceduralMemory{}} {
		typ := reflect.TypeOf(of)
		for i := range typ.NumMethod() {
			name := typ.Elem().Name() + "." + typ.Method(i).Name
			if !slices.Contains(quiet, typ.Method(i).Name) && !slices.ContainsFunc(calls, func(p probe) bool { return p.method == name }) {
				t.Errorf("nobody tries %s: add a call of it", name)
			}
		}
	}
}

// answer is what a call gives, as text.
func answer(t testing.TB, call func(context.Context, *AgentMemory) (any, error), m *AgentMemory) string {
	t.Helper()
	out, err := call(t.Context(), m)
	return asJSON(t, out) + fmt.Sprint(err)
}

// tellAll is all that a memory tells of itself.
func tellAll(t testing.TB, m *AgentMemory) string {
	t.Helper()
	var out strings.Builder
	reads := []string{"Get", "GetMetadata", "List", "History", "Relations", "IncomingRelations", "Match", "Count", "QueryHits", "RecallSimilar", "Recall", "Recent", "Policy", "Snapshots"}
	for _, p := range probes("", 0) {
		if _, method, _ := strings.Cut(p.method, "."); slices.Contains(reads, method) {
			fmt.Fprintln(&out, p.method, answer(t, p.call, m))
		}
	}
	return regexp.MustCompile(`"score":[-.e0-9]+`).ReplaceAllString(out.String(), "")
}

// TestPlacesDoNotShow holds that no listing, search, graph, export, error or name
// shows where points lie, after much was replaced, and no name leads there. // W6, W7, W8
func TestPlacesDoNotShow(t *testing.T) {
	m := openMemory(t, 4)
	ctx := t.Context()
	a, b := must[*AgentMemory](t)(Open(ctx, m.db, neighbourhood)), must[*AgentMemory](t)(Open(ctx, m.db, Config{Namespace: "n1", Scope: "s2", Dimension: 4}))
	settleNeighbour(t, a)
	settleNeighbour(t, b)
	for range 10 {
		must[*loci.Receipt[int64]](t)(a.Semantic().Clear(ctx))
		must[*loci.Receipt[int64]](t)(a.Episodic().Clear(ctx))
		must[*loci.Receipt[Restored]](t)(a.RestoreLatest(ctx))
	}
	scopesOf := func(scopes ...string) (out []string) {
		t.Helper()
		r := must[*loci.SearchResult](t)(m.db.Search(ctx, loci.SearchRequest{Query: secret, Limit: new(100),
			Kinds:  []loci.Kind{loci.KindFact, loci.KindEpisode, loci.KindProcedure, loci.KindMemory},
			Filter: loci.ReadFilter{Namespace: new("n1"), Scopes: scopes}}))
		hidden(t, "search", asJSON(t, r))
		for _, h := range r.Hits {
			switch p := h.Record.(type) {
			case *loci.Fact:
				out = append(out, p.Scope)
			case *loci.Episode:
				out = append(out, p.Scope)
			case *loci.Procedure:
				out = append(out, p.Scope)
			default:
				t.Errorf("hit %+v", h)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for _, c := range []struct{ ask, want []string }{
		{[]string{"s1"}, []string{"s1"}}, {[]string{"s2"}, []string{"s2"}}, {[]string{"s1", "s2"}, []string{"s1", "s2"}}, {[]string{"S1"}, nil},
	} {
		if got := scopesOf(c.ask...); !slices.Equal(got, c.want) {
			t.Errorf("search of %v finds %v", c.ask, got)
		}
	}
	var export bytes.Buffer
	must[*loci.ExportReport](t)(m.db.Export(ctx, &export, nil))
	hidden(t, "export", export.String())
	hidden(t, "health", asJSON(t, m.deepCheck()))
	root := must[*Found[loci.Fact]](t)(a.Semantic().Get(ctx, GetRequest{ID: 1})).Point.RecordID
	filter := loci.ReadFilter{Namespace: new("n1"), Scopes: []string{"s1", "s2"}, Kinds: []loci.Kind{loci.KindFact}}
	around := must[[]any](t)(m.db.Graph().EgoPoints(ctx, root, filter, loci.EgoOptions{}))
	hidden(t, "graph", asJSON(t, around))
	for _, p := range around {
		if f := p.(*loci.Fact); f.Scope != "s1" {
			t.Errorf("the graph around a fact of s1 holds %+v", f)
		}
	}
	// No caller can name a place, not even who knows how they are named.
	for _, scope := range []string{"\x011/1/7/s1", "\x01", "s1\x01"} {
		_, err := Open(ctx, m.db, Config{Namespace: "n1", Scope: scope, Dimension: 4})
		wantCode(t, err, loci.ErrValidation)
		_, err = m.db.Search(ctx, loci.SearchRequest{Query: secret, Kinds: []loci.Kind{loci.KindFact}, Filter: loci.ReadFilter{Namespace: new("n1"), Scopes: []string{scope}}})
		wantCode(t, err, loci.ErrValidation)
	}
	before := tellAll(t, a)
	removed := must[*loci.Receipt[int64]](t)(m.db.Memories().DeleteByFilter(ctx, loci.DeleteRequest{Filter: loci.ReadFilter{Namespace: new("n1"), Scopes: []string{"s1", "s2"}}}))
	if removed.Value != 0 || tellAll(t, a) != before {
		t.Errorf("deleting memories removed %d", removed.Value)
	}
}

// hidden fails where a text shows the mark of a place.
func hidden(t testing.TB, what, text string) {
	t.Helper()
	if strings.Contains(text, "\x01") || strings.Contains(text, `\u0001`) {
		t.Errorf("%s shows a place: %s", what, text)
	}
}

// TestNearNeighbours holds that points of another memory, however near and however
// many, take no place among the hits. // W4
func TestNearNeighbours(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 facts")
	}
	m := openMemory(t, 4)
	ctx := t.Context()
	r := rand.New(rand.NewPCG(1, 2))
	batch := make([]FactInput, 10_000)
	for i := range batch {
		batch[i] = fact(loci.PointID(i), "the lighthouse lighthouse lighthouse", []float32{1, float32(r.NormFloat64()) * 1e-3, 0, 0})
	}
	must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(ctx, FactBatch{Facts: batch}))
	other := must[*AgentMemory](t)(Open(ctx, m.db, Config{Scope: "s2", Dimension: 4}))
	for i, v := range [][]float32{{-1, 0.3, 0, 0}, {-1, 0.2, 0, 0}, {-1, 0.1, 0, 0}} {
		must[*loci.Receipt[Stored]](t)(other.Semantic().Put(ctx, fact(loci.PointID(i), strings.Repeat("long and far away ", 50)+"lighthouse", v)))
	}
	for _, approximate := range []bool{false, true} {
		hits := must[*Hits](t)(other.Semantic().QueryHits(ctx, QueryRequest{Embedding: x(), Approximate: approximate})).Hits
		wantIDs(t, fmt.Sprint("query, approximate ", approximate), hitIDs(hits), 0, 1, 2)
	}
	if hits := must[*Hits](t)(other.Semantic().QueryText(ctx, TextRequest{Text: "lighthouse"})).Hits; len(hits) != 3 {
		t.Errorf("by text %+v", hits)
	}
}
