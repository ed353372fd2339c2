// Package result is the form in which a run of the comparison is kept: one file
// of JSON, from which the tables and plots are made.
package result

// A File is what one run of the comparison measured.
type File struct {
	Machine  Machine   `json:"machine"`
	Commit   string    `json:"commit"`
	Date     string    `json:"date"` // of the day, UTC
	Command  string    `json:"command"`
	Seed     uint64    `json:"seed"`
	Products []Product `json:"products"`
	Rows     []Row     `json:"rows,omitempty"`
	Quality  []Quality `json:"quality,omitempty"`
}

// Machine is what a run ran on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Memory    int64  `json:"memory"` // bytes
	System    string `json:"system"`
	Go        string `json:"go"`
	Python    string `json:"python"`
}

// A Product is one that took part.
type Product struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Settings string   `json:"settings"`
	Durable  string   `json:"durable"`
	Text     bool     `json:"text"`
	Vector   bool     `json:"vector"`
	Hybrid   bool     `json:"hybrid"`
	Filter   bool     `json:"filter"`
	Graph    bool     `json:"graph"`
	Missing  []string `json:"missing,omitempty"`
}

// Tasks.
const (
	TaskBatch   = "batch ingest"        // Rate
	TaskFinish  = "finish"              // Seconds
	TaskSingle  = "single write"        // latency
	TaskVisible = "write to searchable" // latency
	TaskText    = "text"                // latency by Class and Filter
	TaskVector  = "vector"              // latency by Filter; Recall
	TaskHybrid  = "hybrid"              // latency by Filter
	TaskUpdate  = "update"              // latency
	TaskDelete  = "delete"              // latency
	TaskOpen    = "open"                // latency: process that is new, open to first answer
	TaskMemory  = "memory"              // Bytes: after open and a round of every search
	TaskDisk    = "disk"                // Bytes
	TaskRead    = "read while writing"  // latency
	TaskWrite   = "write while reading"
	TaskGraph   = "graph load" // Rate, of relations
	TaskNear    = "graph neighbourhood"
	TaskPath    = "graph path"
	TaskTenants = "tenants"
)

// What a store held when a row was measured, for tasks that cost more the more it
// holds: writing, opening, memory, disk. Engines of one kind are compared with
// stores of the others that hold the same and no more, so such a task gives a row
// for each: Data is one of these, or empty where a store held texts and vectors.
// Searches have no such rows: text is searched in stores of texts alone, vectors in
// stores of vectors alone, hybrid in those of both.
const (
	DataTexts   = "texts alone"
	DataVectors = "vectors alone"
)

// A Row is one figure of one product. What does not apply is left out.
type Row struct {
	Task   string `json:"task"`
	Class  string `json:"class,omitempty"`  // of a query, or a part of the task
	Filter string `json:"filter,omitempty"` // "none", "10 %", "1 %", "0.1 %"
	// Data says which vectors or texts, where not those of the corpus, or that the
	// store held only a part of them: DataTexts, DataVectors.
	Data    string `json:"data,omitempty"`
	Records int    `json:"records"`
	Product string `json:"product"`

	Samples   int     `json:"samples,omitempty"`
	P50       float64 `json:"p50_us,omitempty"`
	P95       float64 `json:"p95_us,omitempty"`
	P99       float64 `json:"p99_us,omitempty"`
	CPU       float64 `json:"cpu_us,omitempty"`    // a call, of the whole process
	Rate      float64 `json:"per_s,omitempty"`     // records a second of wall time
	Seconds   float64 `json:"seconds,omitempty"`   // wall, of the whole task
	CPUSecs   float64 `json:"cpu_s,omitempty"`     // of the whole task
	Recall    float64 `json:"recall,omitempty"`    // of vectors: share of the ten nearest found
	Agreement float64 `json:"agreement,omitempty"` // of graphs: share of the right answers
	Effort    int     `json:"effort,omitempty"`    // the setting that was needed for the recall
	Bytes     int64   `json:"bytes,omitempty"`
	Anonymous int64   `json:"anonymous,omitempty"`
	Idle      int64   `json:"idle,omitempty"`

	// Missing says why there is no figure: the product has no such thing, or the
	// run gave up on it.
	Missing string `json:"missing,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Quality is what one product's own search is worth on one judged set.
type Quality struct {
	Set     string             `json:"set"`
	Path    string             `json:"path"` // text, vector, hybrid
	Product string             `json:"product"`
	Queries int                `json:"queries"`
	Figures map[string]float64 `json:"figures"` // "nDCG@10", "MRR@10", "R@5", "R@10"
	Missing string             `json:"missing,omitempty"`
	Note    string             `json:"note,omitempty"`
}
