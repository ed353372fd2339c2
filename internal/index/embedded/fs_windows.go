package embedded

// syncDir does nothing: Windows has no way to flush a directory, and NTFS
// journals its entries.
func syncDir(string) error { return nil }
