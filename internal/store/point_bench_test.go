package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// pointBench is a memory whose facts are measured.
type pointBench struct {
	*Store
	memory *AgentMemory
	space  *Space
	rng    *rand.Rand
	vector []float32
}

func newPointBench(b *testing.B) *pointBench {
	p := &pointBench{
		Store: openTest(b, b.TempDir(), Options{}), rng: rand.New(rand.NewPCG(1, 2)), vector: make([]float32, 384),
		space: &Space{Name: "v", Model: "m", Dimension: 384, TextVersion: 1, Encoding: 1},
	}
	p.memory = addAgentMemory(b, p.Store, "n", "s")
	writes(b, p.Store, func(tx *WriteTx) error { return tx.AddSpace(p.space) })
	return p
}

// add adds facts of a sentence each, in batches of 1,000, half of which say what
// they are about. They expire one after the other from 1 on.
func (p *pointBench) add(b *testing.B, from, n int, vectors bool) {
	for part := range slices.Chunk(make([]struct{}, n), 1000) {
		writes(b, p.Store, func(tx *WriteTx) error {
			for range part {
				fact := &Point{
					Record: Record{Kind: KindFact, Namespace: "n", Scope: "s", Created: 5, Updated: 5}, Key: uint64(from), Version: 1, Recorded: 5,
					Expires: new(int64(1 + from)),
					Content: fmt.Sprintf("Fact %d is as long as what people note down in one go, about a hundred letters or so.", from),
				}
				if from%2 == 0 {
					fact.Metadata = fmt.Appendf(nil, `{"topic":"t%d","weight":%d}`, p.rng.IntN(100), p.rng.IntN(1000))
				}
				from++
				if err := tx.AddPoint(p.memory.Place(KindFact), fact); err != nil {
					return err
				}
				tx.Stage(&fact.Record, nil)
				if !vectors {
					continue
				}
				for i := range p.vector {
					p.vector[i] = p.rng.Float32()
				}
				if err := tx.PutVector(p.space, &fact.Record, TextOfCaller, p.vector); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// BenchmarkPoints measures facts of a sentence with vectors of 384 numbers.
func BenchmarkPoints(b *testing.B) {
	perFact := func(b *testing.B, run func()) {
		b.ResetTimer()
		cpu := cpuTime()
		run()
		b.ReportMetric(float64(cpuTime()-cpu)/1e3/float64(b.N), "cpu-us/fact")
	}
	for _, vectors := range []bool{false, true} {
		b.Run(fmt.Sprintf("add/vectors=%v", vectors), func(b *testing.B) {
			p := newPointBench(b)
			perFact(b, func() { p.add(b, 0, b.N, vectors) })
		})
	}
	const many = 20_000
	for name, get := range map[string]func(p *pointBench, tx *ReadTx, key int) error{
		"key": func(p *pointBench, tx *ReadTx, key int) error {
			_, err := tx.PointByKey(p.memory.Place(KindFact), uint64(key))
			return err
		},
		"hit": func(p *pointBench, tx *ReadTx, key int) error {
			hit, ok, err := tx.PointHit(p.space.ID, int64(key)+p.memory.ID+1, p.vector)
			if err == nil && (!ok || hit.Key != uint64(key) || len(hit.Vector) == 0) {
				b.Fatal(key, hit)
			}
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			p := newPointBench(b)
			p.add(b, 0, many, true)
			read := func(tx *ReadTx) error {
				for b.Loop() {
					if err := get(p, tx, p.rng.IntN(many)); err != nil {
						return err
					}
				}
				return nil
			}
			if err := p.Read(b.Context(), read); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.Run("count", func(b *testing.B) {
		p := newPointBench(b)
		p.add(b, 0, many, true)
		err := p.Read(b.Context(), func(tx *ReadTx) error {
			for b.Loop() {
				if n, err := tx.CountPoints(p.memory.Place(KindFact), 100); err != nil || n != many-100 {
					return fmt.Errorf("%d, %w", n, err)
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
	// As the sweep of expired ones does it.
	b.Run("remove", func(b *testing.B) {
		p := newPointBench(b)
		p.add(b, 0, b.N, true)
		perFact(b, func() {
			for more := true; more; {
				_, err := p.WriteMany(b.Context(), func(tx *WriteTx) error {
					points, err := tx.ExpiredPoints(1<<62, 250)
					if err != nil {
						return err
					}
					for _, point := range points {
						if err := tx.RemovePoint(point); err != nil {
							return err
						}
					}
					more = len(points) == 250
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		if p.Counters().Counts[KindFact] != 0 {
			b.Fatal("some are left")
		}
	})
}
