// Package text turns strings into what is compared and what is searched: the
// one normal form of names, tags and judgments, and the terms of the text
// index and of queries. It is pure: no I/O, no clock, no state.
package text
