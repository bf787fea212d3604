package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	_ "modernc.org/sqlite"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
	"fencepost/impl/redis"
	leasesql "fencepost/impl/sql"
	"fencepost/impl/sql/postgres"
	"fencepost/impl/zookeeper"
)

// opener opens the store at u. Its close ends all that it has opened.
type opener func(ctx context.Context, u *url.URL) (store lease.Store, close func(), err error)

// schemes are the backends, by the scheme of their URL. A function, so that
// nobody can change it.
func schemes() map[string]opener {
	return map[string]opener{
		"sqlite":     openSQLite,
		"postgres":   openPostgreSQL,
		"postgresql": openPostgreSQL,
		"mysql":      openMariaDB,
		"mariadb":    openMariaDB,
		"etcd":       openEtcd,
		"redis":      openRedis,
		"rediss":     openRedis,
		"zookeeper":  openZooKeeper,
		"kubernetes": openKubernetes,
		"nats":       openNATS,
		"s3":         openS3,
	}
}

// open opens the store that a --backend names. The error says which part of the
// URL makes no sense.
func open(ctx context.Context, backend string) (store lease.Store, close func(), err error) {
	u, err := url.Parse(backend)
	if err != nil {
		return nil, nil, fmt.Errorf("--backend: %w", err)
	}
	opener, ok := schemes()[u.Scheme]
	if !ok {
		return nil, nil, fmt.Errorf("--backend %q: scheme %q is none of %s", u.Redacted(), u.Scheme, strings.Join(slices.Sorted(maps.Keys(schemes())), ", "))
	}
	if store, close, err = opener(ctx, u); err != nil {
		return nil, nil, fmt.Errorf("--backend %s: %w", u.Redacted(), err)
	}
	return store, close, nil
}

// noQuery refuses parameters where there are none, rather than ignore a typing
// error.
func noQuery(u *url.URL) error {
	_, err := parameters(u)
	return err
}

func openSQLite(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	if err := noQuery(u); err != nil {
		return nil, nil, err
	}
	if u.Host != "" || u.Path == "" {
		return nil, nil, errors.New("name a file: sqlite:///absolute/path, with three slashes")
	}
	file := url.URL{Scheme: "file", Path: u.Path, RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"}
	db, err := sql.Open("sqlite", file.String())
	return onSQL(ctx, db, err, leasesql.SQLite())
}

func openMariaDB(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	if err := noQuery(u); err != nil {
		return nil, nil, err
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	if c.DBName == "" {
		return nil, nil, errors.New("name a database: mysql://user:password@host/database")
	}
	db, err := sql.Open("mysql", c.FormatDSN())
	return onSQL(ctx, db, err, leasesql.MariaDB())
}

func onSQL(ctx context.Context, db *sql.DB, err error, d leasesql.Dialect) (lease.Store, func(), error) {
	if err != nil {
		return nil, nil, err
	}
	store, err := leasesql.New(db, d, leasesql.Options{})
	if err == nil {
		err = store.Create(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, func() { db.Close() }, nil
}

func openPostgreSQL(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		return nil, nil, err
	}
	store, err := postgres.New(db, leasesql.Options{})
	if err == nil {
		err = store.Create(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, func() {
		store.Close()
		db.Close()
	}, nil
}

// hosts are the comma-separated servers of u.
func hosts(u *url.URL) ([]string, error) {
	if err := noQuery(u); err != nil {
		return nil, err
	}
	if u.Host == "" {
		return nil, fmt.Errorf("name the servers: %s://host:port,host:port", u.Scheme)
	}
	return strings.Split(u.Host, ","), nil
}

func openEtcd(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	servers, err := hosts(u)
	if err != nil {
		return nil, nil, err
	}
	c := clientv3.Config{Endpoints: servers, DialTimeout: 5 * time.Second, Username: u.User.Username()}
	c.Password, _ = u.User.Password()
	client, err := clientv3.New(c)
	if err != nil {
		return nil, nil, err
	}
	prefix := strings.TrimPrefix(u.Path, "/")
	return etcd.New(client, etcd.Options{Prefix: prefix}), func() { client.Close() }, nil
}

func openRedis(ctx context.Context, u *url.URL) (lease.Store, func(), error) {
	o, err := goredis.ParseURL(u.String())
	if err != nil {
		return nil, nil, err
	}
	rdb := redis.Dial(*o)
	store, err := redis.New(ctx, rdb, redis.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	return store, func() {
		store.Close()
		rdb.Close()
	}, nil
}

func openZooKeeper(_ context.Context, u *url.URL) (lease.Store, func(), error) {
	servers, err := hosts(u)
	if err != nil {
		return nil, nil, err
	}
	store, err := zookeeper.Open(zookeeper.Options{Servers: servers, Root: strings.TrimSuffix(u.Path, "/")})
	if err != nil {
		return nil, nil, err
	}
	return store, store.Close, nil
}
