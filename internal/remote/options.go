package remote

import "fmt"

// Required complains of an option that is empty.
func Required(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s is missing", name)
	}
	return nil
}

// NotNegative complains of an option that is below 0.
func NotNegative(name string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s is negative", name)
	}
	return nil
}

// Or gives n, or otherwise if n is 0.
func Or(n, otherwise int) int { return positive(n, otherwise) }
