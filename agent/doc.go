// Package agent is a memory of facts, episodes and procedures: what an agent
// knows, what happened to it, and what it can do.
//
//	memory, err := agent.Open(ctx, db, agent.Config{Dimension: 384})
//	...
//	facts := memory.Semantic()
//	err = facts.Store(ctx, 7, "The tide table is updated weekly.", embedding)
//	hits, err := facts.Query(ctx, question, 10)
//
// Callers bring ids of their own, numbers of 64 bits, and vectors of their own, or
// leave those to an embedder that is registered for the memory's space. Whatever
// is stored may expire, may be related to something else, and keeps its earlier
// versions. The memory lies in a namespace and scope of the same store as
// everything else: one search covers it, one backup holds it, and no other scope
// sees it.
//
// Points (facts, episodes and procedures) are live until they expire, which hides
// them at once, and current while what they say holds. Queries give current ones.
package agent
