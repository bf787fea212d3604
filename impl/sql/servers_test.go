package leasesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	leasesql "fencepost/impl/sql"
	"fencepost/props/daemon"
)

// server is a database that tests run on.
type server struct {
	dialect leasesql.Dialect
	driver  string
	dsn     string
	daemon  *daemon.Daemon              // nil: there is no server
	restart func(context.Context) error // nil likewise
}

// open opens it as one more process would.
func (s server) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// created opens it with the tables made.
func (s server) created(t testing.TB) *sql.DB {
	t.Helper()
	db := s.open(t)
	if err := leasesql.Create(t.Context(), db, s.dialect); err != nil {
		t.Fatal(err)
	}
	return db
}

// pings is a Ready.
func pings(driver, dsn string) func(context.Context) error {
	return func(ctx context.Context) error {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			return err
		}
		return errors.Join(db.PingContext(ctx), db.Close())
	}
}

func postgreSQL(t testing.TB) server {
	t.Helper()
	const install, bin = "apt-get install postgresql", "/usr/lib/postgresql/*/bin/"
	initdb, binary := daemon.Find(t, install, "initdb", bin+"initdb"), daemon.Find(t, install, "postgres", bin+"postgres")
	dir, port := daemon.Dir(t, "postgres"), daemon.Port(t)
	data := filepath.Join(dir, "data")
	as(t, "postgres", dir, initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	s := server{
		dialect: leasesql.PostgreSQL(), driver: "pgx",
		dsn: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port),
	}
	s.daemon = daemon.Start(t, daemon.Spec{
		Command: []string{binary, "-D", data, "-p", fmt.Sprint(port), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "shared_buffers=32MB"},
		Dir: dir, User: "postgres", Ready: pings(s.driver, s.dsn),
	})
	s.restart = s.daemon.Restart
	return s
}

func mariaDB(t testing.TB) server {
	t.Helper()
	const install = "apt-get install mariadb-server"
	installdb, binary := daemon.Find(t, install, "mariadb-install-db"), daemon.Find(t, install, "mariadbd", "/usr/sbin/mariadbd")
	dir, port := daemon.Dir(t, "mysql"), daemon.Port(t)
	data := filepath.Join(dir, "data")
	as(t, "mysql", dir, installdb, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	s := server{
		dialect: leasesql.MariaDB(), driver: "mysql",
		dsn: fmt.Sprintf("root@tcp(127.0.0.1:%d)/fencepost", port),
	}
	system := fmt.Sprintf("root@tcp(127.0.0.1:%d)/mysql", port)
	s.restart = daemon.Start(t, daemon.Spec{
		Command: []string{binary, "--no-defaults", "--datadir=" + data, fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1",
			"--socket=" + filepath.Join(dir, "socket"), "--innodb-buffer-pool-size=32M", "--max-connections=200"},
		Dir: dir, User: "mysql", Ready: pings(s.driver, system),
	}).Restart
	db, err := sql.Open(s.driver, system)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE DATABASE fencepost`); err != nil {
		t.Fatal(err)
	}
	return s
}

// file is a SQLite database that several handles share as processes would.
func file(t testing.TB) server {
	return server{
		dialect: leasesql.SQLite(), driver: "sqlite",
		dsn: "file:" + filepath.Join(t.TempDir(), "leases.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)",
	}
}

// as runs a command as user where the test is root.
func as(t testing.TB, user, dir string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	if os.Getuid() == 0 {
		cmd = exec.CommandContext(t.Context(), "runuser", append([]string{"-u", user, "--"}, command...)...)
	}
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}
