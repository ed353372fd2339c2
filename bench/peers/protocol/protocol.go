// Package protocol is how the driver of the comparison talks to the process of
// one product: a request is one line of JSON on its standard input, the answer
// one line of JSON on its standard output. Products of Python and Loci speak it
// alike, so that all are asked the same things in the same way.
//
// A worker measures every call by itself, with a monotonic clock around the call
// of the product's own interface and nothing else, and the processor time of its
// whole process over the whole request. Times are in seconds.
package protocol

// Operations of a worker, in the order in which a run asks for them.
const (
	OpHello   = "hello"   // -> Hello
	OpOpen    = "open"    // Open -> Cost
	OpLoad    = "load"    // Load -> Cost: one time a batch, durable when it returned
	OpFinish  = "finish"  // -> Cost: what the product's guide does after bulk loading: build, merge, optimise
	OpSingle  = "single"  // Load (Batch is ignored) -> Cost: one time a record, durable when it returned
	OpVisible = "visible" // Visible -> Cost: from the call that writes to the answer that holds the record
	OpSearch  = "search"  // Search -> Found
	OpUpdate  = "update"  // Load -> Cost: records From..To again, their texts marked as changed
	OpDelete  = "delete"  // Load -> Cost: records From..To by id
	OpMixed   = "mixed"   // Mixed -> MixedCost
	OpMemory  = "memory"  // -> Memory
	OpGraph   = "graph"   // Graph -> Cost: loads entities and relations
	OpNear    = "near"    // Near -> Found: neighbourhoods, times and ids
	OpPath    = "path"    // Path -> Found: shortest paths, as ids from start to end
	OpClose   = "close"   // -> Cost; the process ends
)

// Kinds of search.
const (
	KindText   = "text"
	KindVector = "vector"
	KindHybrid = "hybrid"
)

// A Request is one line to a worker.
type Request struct {
	Op   string `json:"op"`
	Args any    `json:"args,omitempty"`
}

// A Reply is one line from a worker. Exactly one of its fields is set.
type Reply[T any] struct {
	OK    *T     `json:"ok,omitempty"`
	Error string `json:"error,omitempty"` // what went wrong
	// Unsupported says that the product has no such thing, and why in plain words:
	// it is marked in the tables and not stood in for.
	Unsupported string `json:"unsupported,omitempty"`
}

// Hello is what a product is and can do.
type Hello struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Settings says which of its settings the run uses, in plain words.
	Settings string `json:"settings"`
	// Durable says what a returned write means: "synced", "written" (survives the
	// process, not the machine), "saved" (only after an explicit save of the whole), "memory".
	Durable string `json:"durable"`
	Text    bool   `json:"text"` // ranked full text of its own
	Vector  bool   `json:"vector"`
	Hybrid  bool   `json:"hybrid"` // text and vectors in one call of its own
	Filter  bool   `json:"filter"` // by a tag, before or while the best are chosen
	Update  bool   `json:"update"`
	Delete  bool   `json:"delete"`
	Graph   bool   `json:"graph"`
	// OwnAnalysis says that the product's analyser cannot be replaced: it gets plain
	// texts, and pays for analysing them, where others get parted words.
	OwnAnalysis bool     `json:"own_analysis,omitempty"`
	Effort      []int    `json:"effort,omitempty"` // settings of its approximate vector search to try, ascending; none: it has none
	EffortIs    string   `json:"effort_is,omitempty"`
	Missing     []string `json:"missing,omitempty"` // what it lacks, in plain words
}

// Open names the folder of the product's files, empty before the first time.
type Open struct {
	Dir       string `json:"dir"`
	Dimension int    `json:"dimension"` // of all vectors; 0: none are given
	// Analysis is "words" where texts come with their words parted and lower-cased
	// (Record.Words, Query.Words) and engines split at white space, so that all of
	// them look for the same words; "own" where they get the plain text and analyse
	// it as their guides advise for English and Chinese.
	Analysis string `json:"analysis"`
	// Texts says that full text is to be indexed, Vectors that vectors are. A product
	// that has both gets what the run needs.
	Texts   bool `json:"texts"`
	Vectors bool `json:"vectors"`
	// Capacity is how many records there will be, for indexes that are made to a size.
	Capacity int `json:"capacity"`
}

// Load names records by their places in a file of them: from inclusive, to exclusive.
type Load struct {
	Records string `json:"records"` // a file of lines of Record
	Vectors string `json:"vectors"` // little-endian float32, a row a record; empty: none
	From    int    `json:"from"`
	To      int    `json:"to"`
	Batch   int    `json:"batch"`
}

// A Record is a line of a file of records. The line's number is its id.
type Record struct {
	ID    int      `json:"id"`
	Text  string   `json:"text"`
	Words string   `json:"words"` // the text's words, parted by blanks
	Tags  []string `json:"tags"`
}

// A Query is one thing to ask.
type Query struct {
	Text   string `json:"text,omitempty"`
	Words  string `json:"words,omitempty"`
	Vector *int   `json:"vector,omitempty"` // row of Search.Vectors
	Tag    string `json:"tag,omitempty"`    // only records with this tag; empty: all
}

// Search asks queries one after the other. Text means any of the words, the best by
// BM25 first; Vector the cosine.
type Search struct {
	Kind    string  `json:"kind"`
	Vectors string  `json:"vectors,omitempty"` // file of the queries' vectors
	Queries []Query `json:"queries"`
	K       int     `json:"k"`
	Effort  int     `json:"effort,omitempty"` // 0: the product's default
	Exact   bool    `json:"exact,omitempty"`  // compare with every vector
	// Texts asks for the hits' texts beside their ids where the product stores them.
	Texts bool `json:"texts,omitempty"`
}

// Visible writes records one after the other and asks for each of them until it is
// among the best ten: by its first word, which no other record has, where texts are
// indexed (Open.Texts), else by its vector.
type Visible struct {
	Load
	Effort int `json:"effort,omitempty"` // of the search by vector; 0: the product's default
}

// Cost is what a request took.
type Cost struct {
	Times []float64 `json:"times,omitempty"` // seconds, one for each call
	Wall  float64   `json:"wall"`            // of all of them
	CPU   float64   `json:"cpu"`             // of the whole process
}

// Found is what searches found and took.
type Found struct {
	Cost
	IDs [][]int `json:"ids"` // of each query, best first
}

// Mixed has readers search while one writer writes durable single records.
type Mixed struct {
	Write   Load    `json:"write"` // what the writer writes, until the time is over
	Read    Search  `json:"read"`  // what the readers ask, in turns
	Readers int     `json:"readers"`
	Seconds float64 `json:"seconds"`
}

// MixedCost is what they got done.
type MixedCost struct {
	Reads  Cost `json:"reads"`
	Writes Cost `json:"writes"`
}

// Memory is what a process holds, in bytes.
type Memory struct {
	Resident  int64 `json:"resident"`  // all of it
	Anonymous int64 `json:"anonymous"` // of its own: not pages of files
	// Idle is Resident before anything was opened: the language, the libraries.
	Idle int64 `json:"idle"`
}

// Graph names a file of lines of subject, relation, object, separated by tabs.
type Graph struct {
	Triples string `json:"triples"`
}

// Near asks for what is within Depth steps of each entity, either way, by name.
type Near struct {
	Entities []string `json:"entities"`
	Depth    int      `json:"depth"`
	Limit    int      `json:"limit"`
}

// Path asks for a shortest path of each pair, either way along relations.
type Path struct {
	Pairs [][2]string `json:"pairs"`
}

// Names is the answer to Near and Path.
type Names struct {
	Cost
	Names [][]string `json:"names"`
}
