//go:build !unix

package cli

// writable is a guess here: only trying would tell, and that would leave marks.
func writable(string) bool { return true }
