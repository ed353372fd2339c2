// Package e5small holds the weights of the built-in embedding model:
// multilingual-e5-small, 12 layers of 384, four bits a weight, cut to the
// pieces of its vocabulary that are written in Latin, Greek, Chinese, Japanese
// and Korean letters, with all digits, punctuation, symbols and emoji. Text in
// other scripts becomes unknown pieces.
//
// The weights are under the MIT licence; NOTICE, beside this module's go.mod,
// says whose they are and how they were converted.
package e5small

import (
	_ "embed" // for the directives below
	"encoding/binary"
	"math"
)

//go:embed e5small.bin
var data string

// Data gives the packed model file, 47 MB. It lies in the executable's read-only
// part, of which the operating system reads the pages that are used.
func Data() string { return data }

//go:embed centre.bin
var centre string

// Centre gives the mean vector of texts of many sorts in English and Chinese,
// 384 values. Vectors relative to it tell texts apart better: local.Options has a
// field for it.
func Centre() []float32 {
	out := make([]float32, len(centre)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(centre[4*i : 4*i+4])))
	}
	return out
}
