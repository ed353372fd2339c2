package diskspace

import "golang.org/x/sys/windows"

// Free is the space that is left for this user where dir lies.
func Free(dir string) (free uint64, ok bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err == nil
}
