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

//go:embed frame.bin
var frame string

// Frame gives what of the model's vectors tells nothing of a text, as rows of 384
// values: the mean of texts of many sorts in English and Chinese, and two
// directions from the one language to the other. Without them a question finds
// what answers it, not what is in its own language. local.Options has a field for
// it.
func Frame() []float32 {
	out := make([]float32, len(frame)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(frame[4*i : 4*i+4])))
	}
	return out
}
