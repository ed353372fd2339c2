// Package static holds the table of the static embedding model: a vector of 256
// for each of 46,000 pieces of English and Chinese words, digits, punctuation and
// symbols, distilled from the model of package e5small.
//
// The table is under the MIT licence; NOTICE, beside this module's go.mod, says
// whose work it comes from and how it was made.
package static

import _ "embed" // for the directive below

//go:embed static.bin
var data string

// Data gives the packed model file, 7 MB. It lies in the executable's read-only
// part, of which the operating system reads the pages that are used.
func Data() string { return data }
