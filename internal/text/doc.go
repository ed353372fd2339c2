// Package text turns strings into what is compared and what is searched: the
// one normal form of names, tags and judgments, and the terms of the text
// index and of queries.
//
// It is pure: no I/O, no clock, no mutable package state. Everything in it is
// a function of its input, and an Analyzer only keeps buffers.
//
// # Terms
//
// Text is first put into Unicode's compatibility form (NFKC), then cut:
//
//   - Words are runs of letters, marks and digits. They are case folded, Latin
//     letters lose their accents, English words their inflection (Porter's
//     second stemmer), and the stop words are left out.
//   - Chinese, Japanese, Korean and other scripts written without blanks give
//     every character and every pair of adjacent characters.
//   - Words held together by a connector (max_tokens, foo-bar, a/b/c.go, an
//     e-mail address), by a change of case (getUserName) or by letters meeting
//     digits (sha256) give every part and the whole. The whole is written
//     without its connectors, so that wi-fi, WiFi and wifi are one term, except
//     between digits: 1.2.3 stays 1.2.3.
//
// A term has at most MaxTermRunes runes.
package text
