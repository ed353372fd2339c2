package setup

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func server() Server { return Server{"/opt/loci/bin/loci", []string{"mcp"}} }

// befores are files as people have them.
func befores() map[string]string {
	return map[string]string{
		"missing":  "",
		"empty":    "",
		"object":   "{}",
		"one-line": `{"theme": "dark"}`,
		"others": `{
  "theme": "dark",
  "UNDER": {
    "other": {
      "command": "npx",
      "args": ["-y", "other"]
    }
  },
  "last": [1, 2]
}
`,
		"comments": `// Settings.
{
	/* what it looks like */
	"theme": "dark", // at night
	"UNDER": {
		// mine
		"other": { "command": "npx" }, // keep it
	},
	// the end
}
`,
		"crlf":    "{\r\n    \"theme\": \"dark\",\r\n    \"UNDER\": {\r\n        \"other\": {}\r\n    }\r\n}\r\n",
		"bom":     "\xef\xbb\xbf{\n  \"潮\": \"水\"\n}",
		"none":    "{\n  \"UNDER\": {}\n}\n",
		"comment": "{\n  \"UNDER\": {\n    // nothing yet\n  }\n}\n",
		"tight":   `{"UNDER":{"other":{}},"a":1,}`,
	}
}

func TestServers(t *testing.T) {
	for _, c := range Clients() {
		if c.form == formTOML {
			continue
		}
		for name, text := range befores() {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				before := []byte(strings.ReplaceAll(text, "UNDER", c.under[0]))
				exists := name != "missing"
				if !exists {
					before = nil
				}
				roundTrip(t, &c, before, exists, c.addServer(server()), c.removeServer(), c.Name+"-"+name)
			})
		}
	}
}

func TestHooks(t *testing.T) {
	hooked := map[string]string{
		"hooks": `{
  "hooks": {
    // mine
    "Stop": [
      {
        "hooks": [
          {"type": "command", "command": "say done"}
        ]
      }
    ],
    "SessionStart": [],
    "Other": []
  }
}
`,
	}
	for name, text := range befores() {
		hooked[name] = text
	}
	for _, c := range Clients() {
		if !c.HasHooks() {
			continue
		}
		for name, text := range hooked {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				before, exists := []byte(text), name != "missing"
				if !exists {
					before = nil
				}
				s := server()
				s.Command = "/opt/my programs/loci"
				roundTrip(t, &c, before, exists, c.addHooks("linux", s, []string{"--data", "/d e"}), c.removeHooks(), c.Name+"-hooks-"+name)
			})
		}
	}
}

// roundTrip adds, adds again and removes.
func roundTrip(t *testing.T, c *Client, before []byte, exists bool, add, remove edit, golden string) {
	t.Helper()
	after, err := add(before, exists)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := add(after, true); err != nil || !bytes.Equal(again, after) {
		t.Errorf("a second time it became %q, %v", again, err)
	}
	path := filepath.Join("testdata", golden+".golden")
	if c.Name == "claude" || c.Name == "gemini" || c.Name == "codex" || strings.HasSuffix(golden, "-missing") {
		if *update {
			if err := os.WriteFile(path, after, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, after) {
			t.Errorf("%v: %s is old; look at the difference and run the tests with -update. Now it is\n%s", err, path, after)
		}
	}
	back, err := remove(after, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(before)) == 0 {
		if len(bytes.TrimSpace(back)) > 0 {
			t.Errorf("of a file that setup made %q is left", back)
		}
		return
	}
	if !bytes.Equal(back, before) {
		t.Errorf("it became\n%s\nand then\n%q\nnot\n%q", after, back, before)
	}
	if left, err := remove(back, true); err != nil || !bytes.Equal(left, back) {
		t.Errorf("removed twice it is %q, %v", left, err)
	}
}

func TestTOML(t *testing.T) {
	c, _ := Lookup("codex")
	for name, text := range map[string]string{
		"missing": "", "empty": "",
		"plain":   "model = \"o\"\n",
		"no-end":  "model = \"o\" # mine",
		"others":  "# Mine.\nmodel = \"o\"\n\n[mcp_servers.other]\ncommand = \"npx\"\nargs = [\"-y\"]\n\n[profiles.x]\na = 1\n",
		"crlf":    "model = \"o\"\r\n[a]\r\nb = 1\r\n",
		"strings": "a = '''\n" + tomlEnd + "\n'''\n[\"潮 水\"]\nb = 2\n",
	} {
		t.Run(name, func(t *testing.T) {
			roundTrip(t, &c, []byte(text), name != "missing", c.addServer(server()), c.removeServer(), "codex-"+name)
		})
	}
	s := server()
	after, err := c.addServer(s)([]byte("a = 1\n"), true)
	if err != nil {
		t.Fatal(err)
	}
	s.Command = `C:\Program Files\loci "x"\loci.exe`
	moved, err := c.addServer(s)(after, true)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parseTOML(moved)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := serverIn(file, []string{"mcp_servers", "loci"}); !ok || got.Command != s.Command || strings.Count(string(moved), tomlBegin) != 1 {
		t.Errorf("%+v in\n%s", got, moved)
	}
}

func TestRefused(t *testing.T) {
	claude, _ := Lookup("claude")
	codex, _ := Lookup("codex")
	for _, c := range []struct {
		name, text, want string
		client           *Client
	}{
		{"cut short", `{"a": 1`, "line 1", &claude},
		{"an array", `[]`, "no JSON object", &claude},
		{"no JSON", "hello", "line 1", &claude},
		{"not UTF-8", "{\"a\": \"\xff\"}", "not UTF-8", &claude},
		{"UTF-16", "\xff\xfe{\x00}\x00", "not UTF-8", &claude},
		{"servers in a list", `{"mcpServers": []}`, "another form", &claude},
		{"servers twice", `{"mcpServers": {}, "mcpServers": {}}`, "twice", &claude},
		{"someone else", `{"mcpServers": {"loci": {"command": "npx", "args": ["loci"]}}}`, "not this program", &claude},
		{"someone else, a word", `{"mcpServers": {"loci": true}}`, "not this program", &claude},
		{"broken TOML", "a = [\n", "line", &codex},
		{"someone else, TOML", "[mcp_servers.loci]\ncommand = \"npx\"\n", "did not write", &codex},
		{"an inline table", "mcp_servers = { a = { command = \"x\" } }\n", "cannot be put", &codex},
		{"a block without an end", tomlBegin + "\n[mcp_servers.loci]\n", "end line", &codex},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := c.client.addServer(server())([]byte(c.text), true)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// TestMoved: a program that lies elsewhere now is written down there, and what a
// person added stays.
func TestMoved(t *testing.T) {
	for _, c := range []struct{ client, before, after string }{
		{"claude", `{"mcpServers": {"loci": {"type": "stdio", "command": "/old/loci", "args": ["mcp", "--tools", "all"], "env": {"A": "b"}}}}`,
			`{"mcpServers": {"loci": {"type": "stdio", "command": "/opt/loci/bin/loci", "args": ["mcp", "--tools", "all"], "env": {"A": "b"}}}}`},
		{"claude", `{"mcpServers": {"loci": {"command": "loci"}}}`, `{"mcpServers": {"loci": {"command": "/opt/loci/bin/loci", "args": ["mcp"]}}}`},
		{"opencode", `{"mcp": {"loci": {"type": "local", "command": ["C:\\loci.exe", "mcp"]}}}`, `{"mcp": {"loci": {"type": "local", "command": ["/opt/loci/bin/loci","mcp"]}}}`},
	} {
		client, _ := Lookup(c.client)
		got, err := client.addServer(server())([]byte(c.before), true)
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v, %s", c.before, err, got)
		}
	}
	claude, _ := Lookup("claude")
	before := `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/old/loci hook stop --client claude", "timeout": 9}]}]}}`
	got, err := claude.addHooks("linux", server(), nil)([]byte(before), true)
	if err != nil || strings.Contains(string(got), "/old/") || strings.Count(string(got), "hook stop") != 1 {
		t.Errorf("%v, %s", err, got)
	}
	// Server and hooks keep to one memory: whoever named it need not do so again.
	flags := []string{"--data", "/d e"}
	old := Server{"/old/loci", append([]string{"mcp"}, flags...)}
	for _, name := range []string{"claude", "codex", "gemini"} {
		client, _ := Lookup(name)
		servers, err := client.addServer(old)(nil, false)
		if err != nil {
			t.Fatal(err)
		}
		hooks, err := client.addHooks("linux", old, flags)(nil, false)
		if err != nil {
			t.Fatal(err)
		}
		hooks = bytes.ReplaceAll(hooks, []byte("hook prompt --client"), []byte("hook prompt --budget 300 --client"))
		for _, c := range []struct {
			what   string
			before []byte
			edit   func(Server) edit
		}{
			{"server", servers, client.addServer},
			{"hooks", hooks, func(s Server) edit { return client.addHooks("linux", s, nil) }},
		} {
			want := bytes.ReplaceAll(c.before, []byte("/old/loci"), []byte("/opt/loci/bin/loci"))
			if got, err := c.edit(server())(c.before, true); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %s that moved: %v, %s", name, c.what, err, got)
			}
			if got, err := c.edit(Server{"/old/loci", []string{"mcp"}})(c.before, true); err != nil || !bytes.Equal(got, c.before) {
				t.Errorf("%s, %s again: %v, %s", name, c.what, err, got)
			}
		}
		other := []string{"--data", "/other"}
		if got, err := client.addHooks("linux", old, other)(hooks, true); err != nil || bytes.Contains(got, []byte("/d e")) || !bytes.Contains(got, []byte("/other")) {
			t.Errorf("%s, another memory: %v, %s", name, err, got)
		}
	}
}

// document makes JSON with comments, as people write it.
func document() *rapid.Generator[string] {
	blank := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\t", " // c\n", "/* {\"x\": [ */ ", "\r\n"})
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kind := rapid.IntRange(0, 5).Draw(t, "kind")
			if depth == 0 && kind > 3 {
				kind = 0
			}
			gap := func() string { return blank.Draw(t, "gap") }
			switch kind {
			case 0:
				return rapid.SampledFrom([]string{`"a"`, `"潮"`, `"// no \" comment"`, "1", "-2.50e3", "true", "null"}).Draw(t, "scalar")
			case 1, 2, 3, 4:
				var b strings.Builder
				b.WriteString("{" + gap())
				n := rapid.IntRange(0, 3).Draw(t, "members")
				for i := range n {
					name := rapid.SampledFrom([]string{"a", "mcpServers", "hooks", "Stop", "loci2", "潮"}).Draw(t, "name")
					b.WriteString(`"` + strings.Repeat("_", i*boolInt(name != "mcpServers" && name != "hooks" || i > 0)) + name + `"` + gap() + ":" + gap())
					b.WriteString(value(max(depth-1, 0)).Draw(t, "value") + gap())
					if i < n-1 || rapid.Bool().Draw(t, "comma") {
						b.WriteString("," + gap())
					}
				}
				return b.String() + "}"
			}
			var b strings.Builder
			b.WriteString("[" + gap())
			n := rapid.IntRange(0, 3).Draw(t, "elements")
			for i := range n {
				b.WriteString(value(depth-1).Draw(t, "element") + gap())
				if i < n-1 {
					b.WriteString("," + gap())
				}
			}
			return b.String() + "]"
		})
	}
	return rapid.Custom(func(t *rapid.T) string {
		return blank.Draw(t, "head") + value(3).Draw(t, "root") + blank.Draw(t, "tail")
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func decoded(t fataler, raw []byte) map[string]any {
	v, err := hujson.Parse(bytes.Clone(bytes.TrimPrefix(raw, []byte(bom)))) // it writes over what it reads
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	v.Standardize()
	var m map[string]any
	if err := json.Unmarshal(v.Pack(), &m); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return m
}

type fataler interface{ Fatalf(string, ...any) }

// checkEdit adds and removes and holds that all else stays.
func checkEdit(t fataler, text string) {
	c, _ := Lookup("claude")
	after, err := c.addServer(server())([]byte(text), true)
	if err != nil {
		return // refused: nothing is written
	}
	if len(strings.TrimSpace(strings.TrimPrefix(text, bom))) > 0 && !strings.Contains(text, "loci\"") {
		before, now := decoded(t, []byte(text)), decoded(t, after)
		servers, _ := now["mcpServers"].(map[string]any)
		if servers["loci"] == nil {
			t.Fatalf("it is not in\n%s", after)
		}
		delete(servers, "loci")
		if _, there := before["mcpServers"]; !there {
			if len(servers) > 0 {
				t.Fatalf("servers came from nowhere: %s", after)
			}
			delete(now, "mcpServers")
		}
		if !reflect.DeepEqual(before, now) {
			t.Fatalf("%q became\n%s", text, after)
		}
		back, err := c.removeServer()(after, true)
		if err != nil || string(back) != text {
			t.Fatalf("%q became\n%q\nand then\n%q, %v", text, after, back, err)
		}
	}
	if again, err := c.addServer(server())(after, true); err != nil || !bytes.Equal(again, after) {
		t.Fatalf("again it became %s, %v", again, err)
	}
	hooked, err := c.addHooks("linux", server(), nil)([]byte(text), true)
	if err != nil {
		return
	}
	if again, err := c.addHooks("linux", server(), nil)(hooked, true); err != nil || !bytes.Equal(again, hooked) {
		t.Fatalf("hooks again: %s, %v", again, err)
	}
	if back, err := c.removeHooks()(hooked, true); len(strings.TrimSpace(strings.TrimPrefix(text, bom))) > 0 && (err != nil || !strings.Contains(text, "hook ") && string(back) != text) {
		t.Fatalf("%q became\n%q\nand then\n%q, %v", text, hooked, back, err)
	}
}

func TestEveryDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkEdit(t, document().Draw(t, "document")) })
}

func FuzzJSON(f *testing.F) {
	for _, text := range befores() {
		f.Add(strings.ReplaceAll(text, "UNDER", "mcpServers"))
	}
	f.Fuzz(func(t *testing.T, text string) { checkEdit(t, text) })
}

func FuzzTOML(f *testing.F) {
	for _, text := range []string{"", "a = 1", "[a]\n", "a = '''\n", "[mcp_servers]\n", "[[mcp_servers]]\n", "mcp_servers.x = 1\n", tomlBegin + "\n" + tomlEnd} {
		f.Add(text, "/bin/loci")
	}
	f.Fuzz(func(t *testing.T, text, command string) {
		c, _ := Lookup("codex")
		s := Server{strings.ToValidUTF8(command, "") + "/loci", []string{"mcp", "--data", "潮 \"水\"\\"}}
		after, err := c.addServer(s)([]byte(text), true)
		if err != nil || string(after) == text {
			return
		}
		now, err := parseTOML(after)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, after, err)
		}
		if got, ok := serverIn(now, []string{"mcp_servers", "loci"}); !ok || got.Command != s.Command || !reflect.DeepEqual(got.Args, s.Args) {
			t.Fatalf("%q became %q", text, after)
		}
		if strings.Contains(text, tomlBegin) {
			return
		}
		if again, err := c.addServer(s)(after, true); err != nil || !bytes.Equal(again, after) {
			t.Fatalf("%q became %q and then %q, %v", text, after, again, err)
		}
		if back, err := c.removeServer()(after, true); err != nil || string(back) != text {
			t.Fatalf("%q became %q and then %q, %v", text, after, back, err)
		}
	})
}
