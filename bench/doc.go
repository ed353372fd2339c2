// Package bench measures the engine on a generated corpus: how fast it takes
// records, how fast it answers queries of several classes and under filters,
// how soon it answers after opening, how much memory and disk it takes. The
// corpus and the queries are functions of a seed, so that two runs measure the
// same work.
//
// The corpus imitates short notes in two languages: 40 % of the records are
// Chinese, 40 % English, 20 % mixed; a record has about 160 bytes. Words follow
// Zipf's law, the head of each list being real function words and the rest
// pseudo-words, which is enough for the statistics that decide the cost of a
// search and needs no dictionary. See docs/measurements.md.
package bench
