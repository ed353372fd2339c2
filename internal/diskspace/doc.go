// Package diskspace says how much room a file system has left.
package diskspace
