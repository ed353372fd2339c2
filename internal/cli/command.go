package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/openapi"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// addOperations makes a command of every operation: "memories.upsert_many"
// becomes "loci memories upsert-many".
func (a *App) addOperations(root *cobra.Command) {
	groups := map[string]*cobra.Command{}
	for _, o := range op.Default().All() {
		parent, name := root, o.Name
		if group, rest, ok := strings.Cut(o.Name, "."); ok {
			name = rest
			if parent, ok = groups[group]; !ok {
				parent = &cobra.Command{Use: group, Short: "Operations on " + group, GroupID: groupStore}
				switch group {
				case "context":
					parent.Short, parent.Long = "Operations on an agent's context window", contextLong
					parent.AddCommand(a.contextDemoCommand())
				case "facts", "episodes", "procedures", "agent":
					parent.Short, parent.Long = agentHelp(group)
				}
				groups[group] = parent
				root.AddCommand(parent)
			}
		}
		cmd := a.operationCommand(o, kebab(name))
		switch o.Name {
		case "graph.import_text":
			cmd = a.importTextCommand(o, kebab(name))
		case "context.dashboard":
			cmd = a.dashboardCommand(o, kebab(name))
		case "erase":
			cmd = a.eraseCommand(o, kebab(name))
		}
		if strings.Contains(name, "_") {
			cmd.Aliases = []string{name}
		}
		if parent == root {
			cmd.GroupID = groupStore
			switch o.Name {
			case "remember", "recall", "search", "health":
				cmd.GroupID = groupEveryday
			case "search_preset":
				cmd.Aliases = append(cmd.Aliases, "preset")
			}
		}
		parent.AddCommand(cmd)
	}
}

// helpWidth is the width of running text in the help.
const helpWidth = 80

// wrap breaks a paragraph at blanks.
func wrap(text string, width int) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(text) {
		switch {
		case used == 0:
		case used+1+len(word) > width:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}

func kebab(name string) string { return strings.ReplaceAll(name, "_", "-") }

func (a *App) operationCommand(o *op.Operation, name string) *cobra.Command {
	schema := o.SharedInput()
	use := name
	for _, p := range o.Positional {
		if slices.Contains(schema.Required, p) {
			use += " " + strings.ToUpper(p)
		} else {
			use += " [" + strings.ToUpper(p) + "]"
		}
	}
	if len(o.Positional) == 0 && len(schema.Properties) > 0 {
		use += " [JSON | -]"
	}
	long := o.Summary + "."
	if o.Description != "" {
		long += "\n\n" + wrap(o.Description, helpWidth)
	}
	long += "\n\nThe flags set fields of the input; --input takes the whole input as JSON, and\nflags win over it. The schema is shown by: loci schema " + o.Name
	cmd := &cobra.Command{Use: use, Short: o.Summary, Long: long}
	in := newInputFlags(cmd, o, schema)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		raw, err := a.operationInput(cmd, o, in, args)
		if err != nil {
			return err
		}
		return a.Call(cmd.Context(), o.Name, raw)
	}
	return cmd
}

// callCommand reaches every operation by its name, JSON in and out.
func (a *App) callCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "call OPERATION [JSON | -]",
		Short: "Run any operation with a JSON input",
		Long: `Runs an operation by its name. The input is a JSON object, given as an argument
or, with -, on standard input; without it the input is {}.

  loci call memories.list '{"limit": 5}'`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return operationNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, ok := op.Default().Lookup(args[0])
			if !ok {
				return op.Default().Unknown(args[0])
			}
			var raw []byte
			if len(args) == 2 {
				var err error
				if raw, err = a.readInput(cmd.Context(), args[1]); err != nil {
					return err
				}
			}
			raw, err := a.fillDefaults(o, o.InputSchema(), raw, nil)
			if err != nil {
				return err
			}
			return a.Call(cmd.Context(), o.Name, raw)
		},
	}
}

func operationNames() []string {
	var names []string
	for _, o := range op.Default().All() {
		names = append(names, o.Name+"\t"+o.Summary)
	}
	return names
}

// operationSchema is what the schema command shows of an operation.
type operationSchema struct {
	Operation   string             `json:"operation"`
	Summary     string             `json:"summary"`
	Description string             `json:"description,omitempty"`
	ReadOnly    bool               `json:"read_only"`
	Idempotent  bool               `json:"idempotent"`
	Destructive bool               `json:"destructive"`
	LongRunning bool               `json:"long_running"`
	Input       *jsonschema.Schema `json:"input,omitempty"`
	Output      *jsonschema.Schema `json:"output,omitempty"`
}

func (a *App) schemaCommand() *cobra.Command {
	var asOpenAPI bool
	cmd := &cobra.Command{
		Use:   "schema [OPERATION]",
		Short: "Show an operation's JSON Schema, or list the operations",
		Args:  cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return operationNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if asOpenAPI {
				if len(args) > 0 {
					return usageError{errors.New("--openapi describes all operations: leave the name out"), cmd.CommandPath()}
				}
				_, err := a.deps.Stdout.Write(append(openapi.Document(op.Default(), a.deps.Version.Version), '\n'))
				return errs.Wrap(errs.IO, err, "the description could not be written")
			}
			if len(args) == 0 {
				return a.listOperations()
			}
			o, ok := op.Default().Lookup(args[0])
			if !ok {
				return op.Default().Unknown(args[0])
			}
			s := describeOperation(o)
			s.Input, s.Output = o.InputSchema(), o.OutputSchema()
			// A schema is JSON for people as well.
			return a.writeJSONIndent(a.deps.Stdout, s)
		},
	}
	cmd.Flags().BoolVar(&asOpenAPI, "openapi", false, "the whole HTTP surface as an OpenAPI document")
	return cmd
}

func describeOperation(o *op.Operation) operationSchema {
	return operationSchema{
		Operation: o.Name, Summary: o.Summary, Description: o.Description,
		ReadOnly: o.ReadOnly, Idempotent: o.Idempotent, Destructive: o.Destructive, LongRunning: o.LongRunning,
	}
}

func (a *App) listOperations() error {
	list := []operationSchema{}
	rows := [][]string{}
	for _, o := range op.Default().All() {
		list = append(list, describeOperation(o))
		rows = append(rows, []string{o.Name, o.Summary})
	}
	return a.Print(map[string]any{"operations": list}, func(w *Painter) {
		w.Table([]string{"OPERATION", "WHAT IT DOES"}, rows)
	})
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := a.deps.Version
			return a.Print(v, func(w *Painter) {
				text := "loci " + orUnknown(v.Version)
				if v.Revision != "" {
					text += " (" + v.Revision + ")"
				}
				w.Line(text + " " + v.Go + " " + v.Platform)
			})
		},
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
