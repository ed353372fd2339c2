// Package contextpage draws a context scope as one HTML file that is complete in
// itself: it asks nothing of the network and works from a disk. What the server
// knows is written into it twice, as text for readers without scripts and as
// data for the script that draws charts and tables.
package contextpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/loci-memory/loci/pager"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed kit.js
var kitJS string

//go:embed page.js
var pageJS string

//go:embed texts.json
var textsJSON []byte

// script is the page's whole program.
func script() string { return "(() => {\n\"use strict\";\n" + kitJS + pageJS + "})();\n" }

// wording is every sentence of the page in English and in Chinese, by key.
type wording map[string][2]string

var words = sync.OnceValues(func() (wording, error) {
	var w wording
	err := json.Unmarshal(textsJSON, &w)
	return w, err
})

var page = sync.OnceValues(func() (*template.Template, error) {
	w, err := words()
	if err != nil {
		return nil, err
	}
	return template.New("page").Funcs(template.FuncMap{
		"t": func(key string, values ...any) (template.HTML, error) { return w.both(key, values...) },
		"t2": func(key string, values ...any) (template.HTML, error) {
			return w.spans("tspan", key, values...)
		},
		"num":     number,
		"percent": share,
		"swatch":  swatch,
	}).Parse(pageHTML)
})

// Render writes the page of a scope. The same model gives the same bytes.
func Render(w io.Writer, m *pager.Dashboard) error {
	if m == nil {
		return errors.New("contextpage: there is no model to draw")
	}
	tmpl, err := page()
	if err != nil {
		return err
	}
	data, err := json.Marshal(m) // escapes what could end a script element
	if err != nil {
		return err
	}
	v, err := newView(m)
	if err != nil {
		return err
	}
	style, program := "\n"+pageCSS, "\n"+script()
	v.Policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", hash(style), hash(program))
	var texts bytes.Buffer
	if err := json.Compact(&texts, textsJSON); err != nil {
		return err
	}
	v.Style = template.HTML("<style>" + style + "</style>")
	v.Script = template.HTML("<script>" + program + "</script>")
	v.Data = template.HTML(`<script type="application/json" id="model">` + string(data) + "</script>")
	v.Texts = template.HTML(`<script type="application/json" id="texts">` + texts.String() + "</script>")
	var out bytes.Buffer
	if err := tmpl.Execute(&out, v); err != nil {
		return err
	}
	_, err = w.Write(out.Bytes())
	return err
}

// hash names a text in a content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// both gives a sentence in both languages; the page shows one of them. values
// are names and what stands for them, which may be HTML made here.
func (w wording) both(key string, values ...any) (template.HTML, error) {
	return w.spans("span", key, values...)
}

func (w wording) spans(element, key string, values ...any) (template.HTML, error) {
	en, zh, err := w.plain(key, values...)
	if err != nil {
		return "", err
	}
	return template.HTML(fmt.Sprintf(`<%[1]s lang="en" data-l="en">%[2]s</%[1]s><%[1]s lang="zh-Hans" data-l="zh">%[3]s</%[1]s>`, element, en, zh)), nil
}

// plain gives a sentence in English and in Chinese, both as HTML.
func (w wording) plain(key string, values ...any) (en, zh string, err error) {
	pair, ok := w[key]
	if !ok {
		return "", "", fmt.Errorf("contextpage: there is no text %q", key)
	}
	var replace [2][]string
	for i := 0; i+1 < len(values); i += 2 {
		name := fmt.Sprintf("{%v}", values[i])
		english, chinese := values[i+1], values[i+1]
		if p, ok := values[i+1].(phrase); ok {
			english, chinese = p[0], p[1]
		}
		replace[0] = append(replace[0], name, escape(english))
		replace[1] = append(replace[1], name, escape(chinese))
	}
	fill := func(i int) string {
		return strings.NewReplacer(replace[i]...).Replace(template.HTMLEscapeString(pair[i]))
	}
	return fill(0), fill(1), nil
}

// phrase is a value that itself has two languages.
type phrase [2]string

// phrase gives a text without values as a value of another.
func (w wording) phrase(key string, values ...any) (phrase, error) {
	pair, ok := w[key]
	if !ok {
		return phrase{}, fmt.Errorf("contextpage: there is no text %q", key)
	}
	for i := 0; i+1 < len(values); i += 2 {
		for j := range pair {
			pair[j] = strings.ReplaceAll(pair[j], fmt.Sprintf("{%v}", values[i]), fmt.Sprint(values[i+1]))
		}
	}
	return phrase(pair), nil
}

func escape(v any) string { return template.HTMLEscapeString(fmt.Sprint(v)) }
