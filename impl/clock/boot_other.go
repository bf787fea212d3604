//go:build !linux

package clock

func boot() Clock { return Monotonic() }
