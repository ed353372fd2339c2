//go:build !linux

package local

import "net"

// checkPeer would refuse the process of another user. Here the mode of the
// socket and of the lock file with its secret keep those out.
func checkPeer(net.Conn) error { return nil }
