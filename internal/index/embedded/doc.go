// Package embedded is the index that lives in the process: immutable,
// memory-mapped segment files, one mutable segment in memory (the tail), and
// atomic snapshots over both.
//
// A partition is a (namespace, kind) pair. Documents of a segment are sorted by
// partition and id, so that a partition is a range of document numbers and its
// postings are a range of each list: its statistics are exact, and a search
// reads nothing of another namespace.
//
// Scores are BM25 in fixed point (1/65536), so that a sum does not depend on
// the order of its terms: the same records give the same scores in the same
// order however they are spread over segments.
//
// Vectors have segments and tails of their own under the same manifest and the
// same snapshots. Their partitions are (space, namespace, kind); small ones are
// scanned, large ones are divided into lists, and filters act before the best
// are chosen (docs/adr/0021-vector-index.md).
package embedded
