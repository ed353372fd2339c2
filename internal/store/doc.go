// Package store is the truth: records, their projections and the journal that
// feeds every index, kept in one SQL database. It is the only package that
// imports a database driver.
//
// One goroutine writes, in arrival order and with group commit; readers take
// connections of their own and see consistent snapshots. Everything else in
// the data directory derives from what is stored here.
package store
