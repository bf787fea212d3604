module fencepost/impl/zookeeper

go 1.26.0

require (
	fencepost v0.0.0-00010101000000-000000000000
	github.com/go-zookeeper/zk v1.0.4
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace fencepost => ../..
