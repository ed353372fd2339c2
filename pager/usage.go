package pager

// usageState is what is stored about a scope's billed calls besides the calls
// themselves.
type usageState struct {
	LastAtUS int64 `json:"last_at_us,omitempty"` // of the last billed call that was not simulated
}
