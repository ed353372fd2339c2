//go:build !amd64 || purego

package transformer

// HasSIMD says whether models run on assembly kernels.
func HasSIMD() bool { return false }

// fastest are the best kernels that the processor has.
func fastest() kernels { return portable() }

// available are the sets of kernels that run on this processor, the fastest
// last.
func available() []kernels { return []kernels{portable()} }
