package cli

import "testing"

func TestMountKind(t *testing.T) {
	const table = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /home rw - ext4 /dev/sdb1 rw
41 40 0:41 / /home/me/far\040away rw - nfs4 server:/x rw
42 22 0:42 / /tmp rw - tmpfs tmpfs rw
43 42 0:43 / /tmp rw - xfs /dev/sdc1 rw
broken line
`
	for dir, want := range map[string]string{
		"/var/lib": "ext4", "/home/me/far away/data": "nfs4", "/home/me/far": "ext4", "/tmp/a": "xfs", "/tmpx": "ext4",
	} {
		if got := mountKind(table, dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
