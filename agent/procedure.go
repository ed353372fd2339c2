package agent

// ProceduralMemory keeps procedures: ways to do something, and how well they served.
type ProceduralMemory struct{ points }
