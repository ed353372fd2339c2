package cli

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// importTextCommand takes a file where the operation takes a text.
func (a *App) importTextCommand(o *op.Operation, name string) *cobra.Command {
	cmd := a.operationCommand(o, name)
	cmd.Use = name + " FILE | -"
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{errors.New("one file is read at a time"), cmd.CommandPath()}
		}
		if len(args) == 1 && args[0] != "-" {
			text, err := readFile(args[0])
			if err != nil {
				return errs.WithOp(o.Name, err)
			}
			args = []string{text + "\n"} // so that no text is a dash
		}
		return run(cmd, args)
	}
	return cmd
}

// readFile reads a text file up to the limit of an operation's input.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", errs.Wrap(errs.IO, err, "the file cannot be opened")
	}
	defer f.Close()
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(f, op.MaxInputBytes+1))
	if err != nil {
		return "", errs.Wrap(errs.IO, err, "the file cannot be read")
	}
	if n > op.MaxInputBytes {
		return "", errs.Invalid("file", "has more than %d bytes", op.MaxInputBytes)
	}
	return b.String(), nil
}
