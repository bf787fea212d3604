package objectstore_test

import bolt "go.etcd.io/bbolt"

// openBolt does not wait for the disk: what is killed here is never the machine.
func openBolt(file string) (*bolt.DB, error) {
	return bolt.Open(file, 0o600, &bolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true})
}
