package op

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
)

// textField is a field of an input that loses what the memory itself gave: marked
// blocks.
type textField struct {
	path  string // such as "memories[].judgment"
	steps []string
	must  bool // nothing is left to write without it
}

// textFields reads Spec.Texts. It panics on a path that t has not, since that is a
// mistake in the program.
func textFields(name string, t reflect.Type, paths []string) []textField {
	var out []textField
	for _, p := range paths {
		path, must := strings.CutSuffix(p, "!")
		f := textField{path: path, must: must, steps: strings.FieldsFunc(strings.ReplaceAll(path, "[]", ".[]"), func(r rune) bool { return r == '.' })}
		if err := f.check(t); err != nil {
			panic("op: " + name + ": " + err.Error())
		}
		out = append(out, f)
	}
	return out
}

func (f *textField) check(t reflect.Type) error {
	for _, step := range f.steps {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case step == "[]" && t.Kind() == reflect.Slice:
			t = t.Elem()
		case step != "[]" && t.Kind() == reflect.Struct:
			at := jsonField(t, step)
			if at == nil {
				return fmt.Errorf("there is no field %s", f.path)
			}
			t = t.FieldByIndex(at).Type
		default:
			return fmt.Errorf("%s leads nowhere", f.path)
		}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.String {
		return fmt.Errorf("%s is no text", f.path)
	}
	return nil
}

// jsonField finds a field by its name in JSON, nil for none.
func jsonField(t reflect.Type, name string) []int {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name && !f.Anonymous {
			return f.Index
		}
	}
	return nil
}

// unmark takes marked blocks out of the fields of v, a pointer to an input.
func unmark(v any, fields []textField) error {
	for _, f := range fields {
		if err := f.strip(reflect.ValueOf(v).Elem(), f.steps, ""); err != nil {
			return err
		}
	}
	return nil
}

func (f *textField) strip(v reflect.Value, steps []string, path string) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if len(steps) == 0 {
		text := v.String()
		if !mark.Has(text) {
			return nil
		}
		text = mark.Strip(text)
		if f.must && text == "" {
			return errs.Invalid(path, "holds nothing but what was recalled from memory, which is there already")
		}
		v.SetString(text)
		return nil
	}
	if steps[0] == "[]" {
		for i := range v.Len() {
			if err := f.strip(v.Index(i), steps[1:], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if path != "" {
		path += "."
	}
	return f.strip(v.FieldByIndex(jsonField(v.Type(), steps[0])), steps[1:], path+steps[0])
}
