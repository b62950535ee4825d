package site

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	trees "fairway/collector/record"
	"fairway/collector/rootfs"
	"fairway/collector/topology"
	"fairway/remap/node"
)

// newRecord is `fairway record`: what an agent reads of this node, kept for who has no such site.
func newRecord() *cobra.Command {
	var span time.Duration
	var root, word, names, as string
	c := &cobra.Command{
		Use:   "record DIR",
		Short: "Record what agents read of this node, once a second",
		Long: "Writes the files and the answers of lnetctl that agents read of this node into DIR/NODE.log, once a\n" +
			"second, and each line that is typed meanwhile into DIR/labels.txt with its time: what was done, when.\n" +
			"With --stand-ins addresses and names are replaced, by the same ones on every node that gets the same\n" +
			"word. Root reads all of it. Run it on some clients, forwarders and servers at once, calm and with one\n" +
			"fault that you know of, and look the logs through before you send them to anybody.",
		Example: "  fairway record --for 10m --stand-ins 'a word of ours' --names 'cn[1-40],gw[1-4]' /var/tmp/record",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := os.Hostname()
			if err != nil {
				return err
			}
			host, _, _ = strings.Cut(host, ".")
			hidden, err := topology.ParseHostList(names)
			if err != nil {
				return program.BadUsage(fmt.Errorf("--names: %w", err))
			}
			if word == "" && names != "" {
				return program.BadUsage(errors.New("--names belongs to --stand-ins"))
			}
			as = cmp.Or(as, host)
			n := trees.Node{Root: rootfs.At(root), Run: node.Exec}
			if word != "" {
				all := []string{host}
				for _, h := range hidden {
					all = append(all, string(h))
				}
				n.Hide = trees.StandIns(word, all)
				as = string(n.Hide([]byte(as)))
			}
			ctx, stop := context.WithTimeout(cmd.Context(), span)
			defer stop()
			return recordNode(ctx, n, args[0], as, cmd.InOrStdin())
		},
	}
	f := c.Flags()
	f.DurationVar(&span, "for", 5*time.Minute, "how long")
	f.StringVar(&root, "root", "/", "the directory that holds proc and sys")
	f.StringVar(&word, "stand-ins", "", "replace addresses and names; a word that nobody else knows")
	f.StringVar(&names, "names", "", "further host names to replace: a host list")
	f.StringVar(&as, "as", "", "the node's name; its host name if empty")
	return c
}

// recordNode writes a node's log, and what is typed meanwhile with its time.
func recordNode(ctx context.Context, n trees.Node, dir, name string, typed io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	labels, err := os.OpenFile(filepath.Join(dir, "labels.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	go func() { // ends with the program where nothing more is typed
		for in := bufio.NewScanner(typed); in.Scan(); {
			text := in.Bytes()
			if n.Hide != nil {
				text = n.Hide(text)
			}
			now := time.Now()
			fmt.Fprintf(labels, "%d.%03d %s %s\n", now.Unix(), now.Nanosecond()/1e6,
				now.UTC().Format(time.TimeOnly), text)
		}
	}()
	n.Log = log
	return errors.Join(trees.Write(ctx, n), log.Close())
}
