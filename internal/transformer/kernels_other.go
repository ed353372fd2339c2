//go:build !amd64 || purego

package transformer

// HasSIMD says whether models run on assembly kernels.
func HasSIMD() bool { return false }

// fastest are the best kernels that the processor has.
func fastest() kernels { return portable() }
