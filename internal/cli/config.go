package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// rootFlags are the flags that every command takes.
type rootFlags struct {
	data, config, namespace string
	scopes                  []string
	json, quiet, attach     bool
	timeout, wait           time.Duration
	color                   string
	embedder, reranker      string
}

func (a *App) addRootFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.flags.data, "data", "", "data `directory`")
	f.StringVar(&a.flags.config, "config", "", "configuration `file`")
	f.BoolVar(&a.flags.json, "json", false, "one JSON document on standard output, errors as JSON")
	f.BoolVar(&a.flags.quiet, "quiet", false, "results and errors only: no progress, no notes")
	f.StringVar(&a.flags.namespace, "namespace", "", "`namespace` of what is read or written (default: the name of the repository, else \"default\")")
	f.StringArrayVar(&a.flags.scopes, "scope", nil, "`scope` of what is read or written; repeat it to read several (default \"public\")")
	f.DurationVar(&a.flags.timeout, "timeout", 0, "give up after this long; 0 is never")
	f.DurationVar(&a.flags.wait, "wait", 0, "how long to wait for another process that holds the data (default 3s)")
	f.BoolVar(&a.flags.attach, "attach", true, "go through another process that holds the data, and let others go through this one")
	f.StringVar(&a.flags.embedder, "embedder", "", "embedding `model`: none, builtin, static or the address of a service (default \"builtin\")")
	f.StringVar(&a.flags.reranker, "reranker", "", "reranking `model`: none or the address of a service (default \"none\")")
	f.StringVar(&a.flags.color, "color", "", "colour: auto, always or never (default \"auto\")")
}

// fileConfig is the configuration file.
type fileConfig struct {
	Data      *string `json:"data,omitempty"`
	Namespace *string `json:"namespace,omitempty"`
	Scope     *string `json:"scope,omitempty"`
	JSON      *bool   `json:"json,omitempty"`
	Quiet     *bool   `json:"quiet,omitempty"`
	Timeout   *string `json:"timeout,omitempty"`
	Wait      *string `json:"wait,omitempty"`
	Attach    *bool   `json:"attach,omitempty"`
	Color     *string `json:"color,omitempty"`
	Listen    *string `json:"listen,omitempty"`
	Tokens    *string `json:"tokens,omitempty"`
	Embedder  *string `json:"embedder,omitempty"`
	Reranker  *string `json:"reranker,omitempty"`
}

func (c fileConfig) get(name string) (string, bool) {
	text := map[string]*string{
		"data": c.Data, "namespace": c.Namespace, "scope": c.Scope,
		"timeout": c.Timeout, "wait": c.Wait, "color": c.Color, "listen": c.Listen, "tokens": c.Tokens,
		"embedder": c.Embedder, "reranker": c.Reranker,
	}
	if p := text[name]; p != nil {
		return *p, true
	}
	for n, p := range map[string]*bool{"json": c.JSON, "quiet": c.Quiet, "attach": c.Attach} {
		if n == name && p != nil {
			return strconv.FormatBool(*p), true
		}
	}
	return "", false
}

// setting is one value in force and where it came from.
type setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // "default", or a flag, a variable or a file by name
}

// settings are all values in force.
type settings struct {
	file   string
	exists bool
	list   []setting
}

func (s settings) get(name string) setting {
	for _, v := range s.list {
		if v.Name == name {
			return v
		}
	}
	return setting{}
}

func (s settings) json() bool  { return s.get("json").Value == "true" }
func (s settings) quiet() bool { return s.get("quiet").Value == "true" }

func (s settings) duration(name string) time.Duration {
	d, _ := time.ParseDuration(s.get(name).Value) // checked when it was set
	return d
}

// given says whether a value was set by anyone, and whether by a flag.
func (s settings) given(name string) (set, byFlag bool) {
	src := s.get(name).Source
	return src != "" && src != sourceDefault, strings.HasPrefix(src, "--")
}

const sourceDefault = "default"

// settingSpec declares a setting. Each has the environment variable
// LOCI_NAME and the same name in the configuration file.
type settingSpec struct {
	name  string
	check func(string) error
	value string // the default
}

func (a *App) settingSpecs() []settingSpec {
	embedder := modelBuiltin
	if a.deps.Model == nil {
		embedder = modelNone
	}
	return []settingSpec{
		{"data", checkFilled, ""},
		{"namespace", nil, loci.DefaultNamespace},
		{"scope", nil, loci.PublicScope},
		{"json", checkBool, "false"},
		{"quiet", checkBool, "false"},
		{"timeout", checkDuration, "0s"},
		{"wait", checkDuration, "3s"},
		{"attach", checkBool, "true"},
		{"color", checkColor, "auto"},
		{"listen", checkFilled, defaultListen},
		{"tokens", nil, ""},
		{"embedder", a.checkEmbedder, embedder},
		{"reranker", checkReranker, modelNone},
	}
}

func checkFilled(v string) error {
	if strings.TrimSpace(v) == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func checkBool(v string) error {
	if _, err := strconv.ParseBool(v); err != nil {
		return errors.New("must be true or false")
	}
	return nil
}

func checkDuration(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d < 0 {
		return errors.New("must be a length of time such as 30s or 2m")
	}
	return nil
}

func checkColor(v string) error {
	switch v {
	case "auto", "always", "never":
		return nil
	}
	return errors.New("must be auto, always or never")
}

// loadSettings finds what is in force: flags, then environment, then file, then
// defaults.
func (a *App) loadSettings(cmd *cobra.Command) error {
	file, named, err := a.configFile(cmd)
	if err != nil {
		return err
	}
	var conf fileConfig
	exists := false
	if file != "" {
		raw, err := os.ReadFile(file)
		switch {
		case err == nil:
			exists = true
			if conf, err = op.DecodeStrict[fileConfig](raw); err != nil {
				return errs.Wrap(errs.Validation, err, "configuration file %s", file)
			}
		case named || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR): // a home of /dev/null is none
			return errs.Wrap(errs.IO, err, "configuration file")
		}
	}
	s := settings{file: file, exists: exists}
	for _, spec := range a.settingSpecs() {
		v, err := a.resolve(cmd, spec, conf, file)
		if err != nil {
			return err
		}
		s.list = append(s.list, v)
	}
	a.settings = s
	return nil
}

func (a *App) resolve(cmd *cobra.Command, spec settingSpec, conf fileConfig, file string) (setting, error) {
	v := setting{Name: spec.name, Value: spec.value, Source: sourceDefault}
	env := "LOCI_" + strings.ToUpper(spec.name)
	if flag := cmd.Flag(spec.name); flag != nil && flag.Changed {
		v.Value, v.Source = flag.Value.String(), "--"+spec.name
		if spec.name == "scope" {
			v.Value = strings.Join(a.flags.scopes, ", ")
		}
	} else if text, ok := a.deps.LookupEnv(env); ok && text != "" {
		v.Value, v.Source = text, env
	} else if text, ok := conf.get(spec.name); ok {
		v.Value, v.Source = text, file
	} else if noColor, ok := a.deps.LookupEnv("NO_COLOR"); ok && noColor != "" && spec.name == "color" {
		v.Value, v.Source = "never", "NO_COLOR"
	} else if spec.name == "data" {
		dir, err := a.baseDir("XDG_DATA_HOME", "LOCALAPPDATA", ".local/share")
		if err != nil {
			return v, nil // what needs the directory says so
		}
		v.Value = filepath.Join(dir, "loci")
	} else if spec.name == "namespace" {
		v.Value, v.Source = a.defaultNamespace()
	}
	if spec.check != nil {
		if err := spec.check(v.Value); err != nil {
			return v, errs.Invalid(v.Source, "%s", err)
		}
	}
	if spec.name == "embedder" || spec.name == "reranker" {
		if err := noCredentials(v); err != nil {
			return v, errs.Invalid(v.Source, "%s", err)
		}
	}
	if spec.name == "json" || spec.name == "quiet" || spec.name == "attach" {
		b, _ := strconv.ParseBool(v.Value)
		v.Value = strconv.FormatBool(b)
	}
	if spec.name == "data" {
		abs, err := filepath.Abs(v.Value)
		if err != nil {
			return v, errs.Wrap(errs.IO, err, "the data directory")
		}
		v.Value = abs
	}
	return v, nil
}

// wantsJSON is JSON for errors that come before the settings are known.
func (a *App) wantsJSON() bool {
	if a.settings.list != nil {
		return a.JSON()
	}
	v, _ := a.deps.LookupEnv("LOCI_JSON")
	b, _ := strconv.ParseBool(v)
	for _, arg := range a.deps.Args {
		// A flag that stands behind the one in error was never parsed.
		if arg == "--" {
			break
		}
		if arg == "--json" || arg == "--json=true" {
			b = true
		}
	}
	return b || a.flags.json
}

// configFile is the configuration file's path, and whether someone named it; an
// unnamed one need not exist.
func (a *App) configFile(cmd *cobra.Command) (string, bool, error) {
	if f := cmd.Flag("config"); f != nil && f.Changed {
		return a.flags.config, true, nil
	}
	if v, ok := a.deps.LookupEnv("LOCI_CONFIG"); ok && v != "" {
		return v, true, nil
	}
	dir, err := a.baseDir("XDG_CONFIG_HOME", "APPDATA", ".config")
	if err != nil {
		return "", false, nil // no home: there is no such file either
	}
	return filepath.Join(dir, "loci", "config.json"), false, nil
}

// DataDir is the data directory in force. Where nobody named one and there is no home
// directory, it is ErrValidation: much can be done without one.
func (a *App) DataDir() (string, error) {
	if dir := a.settings.get("data").Value; dir != "" {
		return dir, nil
	}
	return "", errs.Invalid("--data", "there is no home directory; name the data directory with --data or LOCI_DATA")
}

// baseDir follows the XDG rules: the variable counts only when it holds an
// absolute path.
func (a *App) baseDir(xdg, windows, fallback string) (string, error) {
	if v, ok := a.deps.LookupEnv(xdg); ok && filepath.IsAbs(v) {
		return v, nil
	}
	if runtime.GOOS == "windows" {
		if v, ok := a.deps.LookupEnv(windows); ok && filepath.IsAbs(v) {
			return v, nil
		}
	}
	home, err := a.deps.HomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, filepath.FromSlash(fallback)), nil
}

func (a *App) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show the settings in force and where each came from",
		Long: `Shows every setting, its value and its source. Flags win over LOCI_* variables,
these over the configuration file, and that over the defaults; loci where says more
about the namespace. The file is a
JSON object with the names shown here. Keys of services come from LOCI_EMBEDDER_KEY
and LOCI_RERANKER_KEY, or from files that LOCI_EMBEDDER_KEY_FILE and
LOCI_RERANKER_KEY_FILE name, and are never shown.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s := a.settings
			s.list = a.shownSettings()
			return a.Print(map[string]any{"file": s.file, "file_exists": s.exists, "settings": s.list}, func(w *Painter) {
				rows := [][]string{}
				for _, v := range s.list {
					rows = append(rows, []string{v.Name, v.Value, v.Source})
				}
				w.Table([]string{"SETTING", "VALUE", "FROM"}, rows)
				state := "not there"
				if s.exists {
					state = "read"
				}
				w.Line("")
				w.Line(w.Dim("configuration file: " + s.file + " (" + state + ")"))
			})
		},
	}
}

// shownSettings are the settings without secrets, and whether there are any.
func (a *App) shownSettings() []setting {
	var shown []setting
	for _, v := range a.settings.list {
		model := v.Name == "embedder" || v.Name == "reranker"
		if model {
			v.Value = shownModel(v)
		}
		shown = append(shown, v)
		if !model {
			continue
		}
		key := setting{Name: v.Name + "_key", Value: "not set"}
		k, source, err := a.key(v.Name)
		switch {
		case err != nil:
			key.Value = "cannot be read"
		case !k.IsZero():
			key.Value = "set"
		}
		key.Source = source
		shown = append(shown, key)
	}
	return shown
}
