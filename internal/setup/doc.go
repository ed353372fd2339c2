// Package setup writes a memory into the configuration of the programs that use
// it, and takes it out again: as an MCP server, and as hooks where a program has
// those.
//
// A file keeps all that is not setup's to the byte, comments included. Before one is
// changed a copy is kept beside it, and the change is written whole or not at all. A
// file that cannot be read as what it should be is left alone.
package setup
