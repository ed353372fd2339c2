// Package render writes the text of a context: the resident pages as one JSON
// document whose bytes a provider's prompt cache keys on.
//
// The bytes are frozen. A page that did not change gives the same bytes in every
// process and every later version of the program, since a byte that differs makes
// a reader pay for all that follows it. Hence:
//
//   - encoding/json is not used. What it escapes (<, >, &, U+2028) and how it
//     writes control characters has changed between releases of Go, and nothing
//     promises that it will not again. The strings of a text are written here.
//   - Keys come in one order, and nothing is written that changes while the page
//     does not: no time, score, count or generation.
//   - Items stand on lines of their own, and the comma leads a line instead of
//     ending the one before. So the byte behind an item is always a newline, and
//     an item that is appended alters none of the bytes before it.
//
// A text looks like this:
//
//	{"vc":1,"core":[
//	{"id":"a","version":1,"mode":"full","title":"rules","tags":[],"content":"..."}
//	,{"id":"i3","version":1,"mode":"index","seq":3,"title":"step 3","summary":"..."}
//	],"working":[
//	{"id":"w1","version":1,"mode":"full","title":"log","tags":[],"content":"..."}
//	]}
//
// The stable prefix ends with the newline behind the last item in core: that is
// where a host sets its cache breakpoint. What is behind it is the tail.
package render
