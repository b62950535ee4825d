// Package leash keeps what a testbed starts from outliving it: threads whose processes die with them, a directory whose
// owner holds a lock, control groups and links that the next sweep removes.
package leash
