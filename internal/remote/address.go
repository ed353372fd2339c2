package remote

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An Address is where a model is, as a user writes it in one line:
//
//	[SERVICE+]http[s]://HOST[/PATH][?PARAMETER=VALUE&...]
type Address struct {
	Service    string // "": the address does not say
	Host       string // without the port
	Port       string // "": the scheme's
	url        *url.URL
	parameters url.Values
}

// ParseAddress reads an address. Its errors repeat no more of it than the
// scheme and the names of parameters, since the rest may hold a secret.
func ParseAddress(s string) (*Address, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	a := &Address{url: u, Host: u.Hostname(), Port: u.Port()}
	scheme := u.Scheme
	if service, rest, found := strings.Cut(scheme, "+"); found {
		a.Service, scheme = service, rest
	}
	switch {
	case scheme != "http" && scheme != "https":
		return nil, fmt.Errorf("an unknown scheme %q: an address starts with http://, https:// or a service and a plus, as ollama+http://",
			u.Scheme)
	case a.Host == "":
		return nil, errors.New("the address names no host")
	case u.Fragment != "":
		return nil, errors.New("the address has a fragment, which means nothing here")
	}
	if a.parameters, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, errors.New("the parameters of the address cannot be read")
	}
	u.Scheme, u.RawQuery, u.ForceQuery = scheme, "", false
	return a, nil
}

// Default sets the path of an address that has none.
func (a *Address) Default(path string) {
	if a.Bare() {
		a.url.Path = path
	}
}

// Bare says whether the address has no path.
func (a *Address) Bare() bool { return strings.Trim(a.url.Path, "/") == "" }

// URL gives the address without the service and the parameters.
func (a *Address) URL() string { return a.url.String() }

// Shown gives URL without what may be secret in it.
func (a *Address) Shown() string { return Shown(a.url) }

// Known complains of parameters that are not among names or given twice.
func (a *Address) Known(names ...string) error {
	var problems []error
	for name, values := range a.parameters {
		if !slices.Contains(names, name) {
			problems = append(problems, fmt.Errorf("an unknown parameter %q, not one of %s", name, strings.Join(names, ", ")))
		} else if len(values) > 1 {
			problems = append(problems, fmt.Errorf("the parameter %s is given %d times", name, len(values)))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// Text gives a parameter, or otherwise if it is not there.
func (a *Address) Text(name, otherwise string) string {
	if a.parameters.Has(name) {
		return a.parameters.Get(name)
	}
	return otherwise
}

// Number gives a parameter that is a whole number from 1 on, or otherwise if
// it is not there.
func (a *Address) Number(name string, otherwise int) (int, error) {
	if !a.parameters.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(a.parameters.Get(name))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("the parameter %s is not a whole number from 1 on", name)
	}
	return n, nil
}
