//go:build amd64 && !purego

package transformer

import "golang.org/x/sys/cpu"

// halfFloats is the bit of CPUID leaf 1 that stands for float16 conversions.
const halfFloats = 1 << 29

// HasSIMD says whether models run on assembly kernels.
func HasSIMD() bool { return cpu.X86.HasAVX2 && cpuid(1)&halfFloats != 0 }

// fastest are the best kernels that the processor has.
func fastest() kernels {
	choices := available()
	return choices[len(choices)-1]
}

// available are the sets of kernels that run on this processor, the fastest
// last.
func available() []kernels {
	out := []kernels{portable()}
	if !HasSIMD() {
		return out
	}
	k := kernels{dotRows: tileRows, dotTile: dotTileAVX2, mixTile: mixTileAVX2, quantize: quantizeAVX2, softmax: softmaxAVX2, gelu: geluAVX2, norm: normAVX2}
	out = append(out, k)
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VNNI {
		k.dotRows, k.dotTile = 2*tileRows, dotTileVNNI
		out = append(out, k)
	}
	return out
}
