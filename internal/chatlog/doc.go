// Package chatlog reads conversations that other programs have written down:
// lines of JSON, and the exports of ChatGPT and of Claude. It gives them as a
// stream of messages with their place in the conversation.
//
// It is pure: it reads the io.Reader it is given and nothing else, no clock, no
// file, no state. Storing messages is left to its callers.
//
// # Nothing is dropped in silence
//
// Every message of the input is either handed on or counted in Report.LeftOut
// with the reason. What a message had besides its text is counted in
// Report.Parts, and every change to a text in the other counts of the report.
//
// # Memory
//
// Of lines, one is held at a time; of an export, the texts of one conversation.
// What grows with the file is 24 bytes a conversation and 8 bytes a message that
// has an id, in maps, and so up to about twice that. Limits bounds all of it.
//
// The formats are described in docs/format/conversations.md.
package chatlog
