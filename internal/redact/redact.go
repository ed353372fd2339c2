// Package redact takes out of messages what nobody should read in them.
package redact

import "strings"

const (
	sharedRun = 12 // bytes in a row that a message and a text have in common by chance at most
	shortText = 3  // bytes; shorter texts are in every message
)

// Hide takes out of a message what it repeats of texts, which is any run of 12
// bytes and whole texts that are shorter, down to 3 bytes; and secrets, as a
// whole, wherever they stand. "[...]" stands in their place. The result is valid
// UTF-8.
func Hide(message string, secrets, texts []string) string {
	// Broken bytes go first, everywhere: taken out afterwards they would let what
	// they part come together.
	message, secrets, texts = whole(message), wholes(secrets), wholes(texts)
	hidden := make([]bool, len(message))
	cover := func(part string) {
		for from := 0; part != ""; {
			i := strings.Index(message[from:], part)
			if i < 0 {
				return
			}
			for k := from + i; k < from+i+len(part); k++ {
				hidden[k] = true
			}
			from += i + 1
		}
	}
	runs := map[string]bool{}
	for i := 0; i+sharedRun <= len(message); i++ {
		runs[message[i:i+sharedRun]] = true
	}
	for _, secret := range secrets {
		cover(secret)
	}
	for _, text := range texts {
		if len(text) < sharedRun && len(text) >= shortText {
			cover(text)
		}
		for i := 0; i+sharedRun <= len(text); i++ {
			if run := text[i : i+sharedRun]; runs[run] {
				cover(run)
				delete(runs, run) // once is enough
			}
		}
	}
	var out strings.Builder
	for i := 0; i < len(message); i++ {
		switch {
		case !hidden[i]:
			out.WriteByte(message[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString("[...]")
		}
	}
	return whole(out.String()) // a run may begin or end within a character
}

// whole leaves out what is not UTF-8.
func whole(s string) string { return strings.ToValidUTF8(s, "") }

func wholes(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = whole(s)
	}
	return out
}
