package embedded

import (
	"encoding/binary"
	"unsafe"
)

// column reads numbers of a file as a slice. On machines of the file's byte
// order it is the file's own memory, else a copy.
func column[T int64 | uint32 | float32](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b) < size {
		return nil
	}
	if littleEndian() {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/size)
	}
	out := make([]T, len(b)/size)
	for i := range out {
		if _, err := binary.Decode(b[i*size:], binary.LittleEndian, &out[i]); err != nil {
			panic(err) // the length is right
		}
	}
	return out
}

// codesOf reads bytes as int8 codes.
func codesOf(b []byte) []int8 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(&b[0])), len(b))
}

// bytesOf is the reverse of codesOf.
func bytesOf(codes []int8) []byte {
	if len(codes) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&codes[0])), len(codes))
}

// littleEndian says whether this machine stores numbers as the files do. The
// compiler knows the answer.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }
