// Package note turns files into what is stored and searched: it decodes them,
// cuts them into chunks, renders Markdown to plain text, and checks relative
// paths.
//
// It is pure: no I/O, no clock, no state. Reading files and writing records is
// left to its callers.
//
// # Chunks
//
// Split sees a text as a sequence of blocks: front matter, fenced code,
// tables, headings with the lines directly under them, and paragraphs, which
// end at a blank line. A list without blank lines is one paragraph. Every
// block is a chunk of its own, and only a block that is too long becomes
// several. Lines are numbered as an editor numbers them, and chunks hold
// the text as it was written, with "\n" between lines.
//
// # Plain text
//
// PlainText gives the words of a text without its markup. It works block by
// block, so that what is found does not depend on where a text was cut. See
// there for what is kept.
package note
