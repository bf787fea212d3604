// Package zookeeper
package zookeeper
