//go:build amd64 && !purego

package transformer

import "golang.org/x/sys/cpu"

// halfFloats is the bit of CPUID leaf 1 that stands for float16 conversions.
const halfFloats = 1 << 29

// HasSIMD says whether models run on assembly kernels.
func HasSIMD() bool { return cpu.X86.HasAVX2 && cpuid(1)&halfFloats != 0 }

// fastest are the best kernels that the processor has.
func fastest() kernels {
	if !HasSIMD() {
		return portable()
	}
	return kernels{dotTile: dotTileAVX2, mixTile: mixTileAVX2, quantize: quantizeAVX2, softmax: softmaxAVX2, gelu: geluAVX2, norm: normAVX2}
}
