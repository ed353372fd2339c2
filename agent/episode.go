package agent

// EpisodicMemory keeps episodes: what happened, and when.
type EpisodicMemory struct{ points }
