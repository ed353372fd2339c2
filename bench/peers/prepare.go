package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const (
	requirements = "python/requirements.txt"
	adapters     = "python/adapters"
	stampName    = "loci-peers.stamp"
)

func prepareCommand() *cobra.Command {
	var env string
	c := &cobra.Command{
		Use:   "prepare",
		Short: "Make the isolated Python environment with the pinned peers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := environment(env)
			if err != nil {
				return err
			}
			python, err := prepare(cmd.Context(), env, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), python)
			return nil
		},
	}
	c.Flags().StringVar(&env, "env", "", "folder of the environment (default: loci-peers/env in the user's cache)")
	return c
}

// environment gives the folder of the environment, in the user's cache if none is
// named.
func environment(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the environment; name one with --env: %w", err)
	}
	return filepath.Join(cache, "loci-peers", "env"), nil
}

// prepare makes the environment in dir if it is not there as the requirements
// have it, and gives its interpreter.
func prepare(ctx context.Context, dir string, progress io.Writer) (string, error) {
	wanted, err := scripts.ReadFile(requirements)
	if err != nil {
		return "", err
	}
	stamp := fmt.Sprintf("%x\n", sha256.Sum256(wanted))
	python := interpreter(dir)
	stampFile := filepath.Join(dir, stampName)
	switch kept, err := os.ReadFile(stampFile); {
	case err == nil && string(kept) == stamp:
		return python, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := mayMake(dir); err != nil {
		return "", err
	}
	base, err := basePython(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "making a Python environment in %s\n", dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := quietly(ctx, base, "-m", "venv", "--clear", dir); err != nil {
		return "", fmt.Errorf("python's venv module is needed (on Debian: the package python3-venv): %w", err)
	}
	// From here on the folder is known to be this program's, complete or not.
	if err := os.WriteFile(stampFile, []byte("incomplete\n"), 0o644); err != nil {
		return "", err
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, wanted, 0o644); err != nil {
		return "", err
	}
	fmt.Fprintln(progress, "installing the pinned peers into it; this takes minutes")
	if err := quietly(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list); err != nil {
		return "", fmt.Errorf("installing the peers: %w", err)
	}
	return python, os.WriteFile(stampFile, []byte(stamp), 0o644)
}

// mayMake refuses a folder that holds anything that this program did not make,
// because making the environment empties it.
func mayMake(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == stampName {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is neither empty nor an environment of this program; to use an interpreter that has the peers, name it with --python", dir)
	}
	return nil
}

func interpreter(env string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(env, "Scripts", "python.exe")
	}
	return filepath.Join(env, "bin", "python")
}

// basePython finds the system's Python.
func basePython(ctx context.Context) (string, error) {
	for _, name := range []string{"python3", "python"} {
		found, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if quietly(ctx, found, "-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))") == nil {
			return found, nil
		}
	}
	return "", errors.New("no python3 of version 3.10 or later with its venv module was found (on Debian: apt-get install python3-venv)")
}

// quietly runs a command; its output is told only in the error.
func quietly(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// unpack writes the workers' scripts below dir and gives the path of the worker.
func unpack(dir string) (string, error) {
	if err := os.CopyFS(dir, scripts); err != nil {
		return "", err
	}
	return filepath.Join(dir, "python", "worker.py"), nil
}

// peerNames gives the names of the peers: the modules of adapters that hold an
// Adapter.
func peerNames() ([]string, error) {
	entries, err := scripts.ReadDir(adapters)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".py")
		if !ok || name == "__init__" {
			continue
		}
		source, err := scripts.ReadFile(path.Join(adapters, e.Name()))
		if err != nil {
			return nil, err
		}
		if bytes.Contains(source, []byte("\nclass Adapter(")) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
