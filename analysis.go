package loci

import (
	"runtime"
	"sync"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/text"
)

// analyzerVersion changes whenever the analyser or the field weights find other
// terms or frequencies: index files of another version are rebuilt.
const analyzerVersion = 1

// analyzers are kept because their buffers are worth keeping.
var analyzers = sync.Pool{New: func() any { return new(text.Analyzer) }}

// analyzeText is the analyser as the index takes it.
func analyzeText(s string, emit func(term []byte)) int {
	a := analyzers.Get().(*text.Analyzer)
	defer analyzers.Put(a)
	return a.Analyze(s, emit)
}

// analyzeQuery is a query as the index takes it.
func analyzeQuery(s string, field MatchField) index.Query {
	q := text.AnalyzeQuery(s)
	out := index.Query{Groups: make([]index.Group, len(q.Groups)), Chars: q.Chars, Field: indexFields[field]}
	for i, g := range q.Groups {
		out.Groups[i] = index.Group(g)
	}
	return out
}

var indexFields = map[MatchField]index.Field{
	"": index.FieldAll, MatchAll: index.FieldAll, MatchText: index.FieldText, MatchName: index.FieldName, MatchPath: index.FieldPath,
}

// parallel calls f for 0..n-1 on all processors.
func parallel(n int, f func(i int)) {
	tasks := min(runtime.GOMAXPROCS(0), (n+draftsPerTask-1)/draftsPerTask)
	var group sync.WaitGroup
	for t := range tasks {
		group.Go(func() {
			for i := t * n / tasks; i < (t+1)*n/tasks; i++ {
				f(i)
			}
		})
	}
	group.Wait()
}
