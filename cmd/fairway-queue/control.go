package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"fairway/cmd/program"
	queuesource "fairway/collector/source/queue"
	"fairway/collector/unixsocket"
	"fairway/remap/queue"
)

// openControl answers on a unix socket that only the queue's own user and root may use: GET /report,
// GET /clients, GET /merged, PUT /table with a table, and PUT /global with shares of an all-gather.
func openControl(path string, r *queue.Queue) (io.Closer, error) {
	l, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) { answer(w, r.Report()) })
	mux.HandleFunc("GET /clients", func(w http.ResponseWriter, _ *http.Request) { answer(w, r.Clients()) })
	mux.HandleFunc("GET /merged", func(w http.ResponseWriter, _ *http.Request) { answer(w, r.Report().Merged) })
	take := func(path string, what func(body io.Reader) error) {
		mux.HandleFunc("PUT "+path, func(w http.ResponseWriter, q *http.Request) {
			if err := what(q.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	take("/table", func(body io.Reader) error {
		t, err := queue.ReadTable(body)
		if err != nil {
			return err
		}
		return r.Share(t)
	})
	take("/global", func(body io.Reader) error {
		g, err := queue.ReadGlobal(body)
		if err != nil {
			return err
		}
		return r.Gathered(g)
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go s.Serve(l) // ends with Close
	return s, nil
}

func newShare() *cobra.Command {
	return &cobra.Command{
		Use:   "share SOCKET TABLE.json",
		Short: "Give a running queue another policy and other jobs, at once",
		Long: "TABLE.json is {\"policy\",\"idle\",\"lease_seconds\",\"jobs\":[{\"job\",\"user\",\"group\",\"size\"," +
			"\"priority\",\n" +
			"\"clients\":[ADDRESS],\"nodes\":[NAME]}]}; an empty policy serves in the order of arrival.",
		Example: "  fairway-queue share /run/fairway/queue.sock table.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, a []string) error {
			t, err := readTable(a[1])
			if err != nil {
				return err
			}
			body, err := json.Marshal(t)
			if err != nil {
				return err
			}
			return ask(cmd.Context(), a[0], http.MethodPut, "/table", body, cmd.OutOrStdout())
		},
	}
}

func newStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status SOCKET",
		Short: "Print how a running queue shares and what it has done for each job, as JSON",
		Long: "by is how requests are served: global (shares of an all-gather over all queues), local (this queue's " +
			"jobs\n" +
			"by its table's policy) or arrival (in their order). Of each job: requests, bytes, cost (bytes, and 32 " +
			"KiB for\n" +
			"each request), waited_seconds (for how long any of its requests waited here), and now waiting and " +
			"connections.\n" +
			"Clients in no job are under \"\". With --gather or --read-cache merged has the writes and reads of\n" +
			"clients that went together (writes_in, reads_in), the messages that they went in (writes_out,\n" +
			"reads_out), and their bytes; reads that needed no message of their own (hits) and that did (misses);\n" +
			"and the bytes that were read before anybody asked (ahead_bytes), and for which nobody did\n" +
			"(unused_bytes).",
		Example: "  fairway-queue status /run/fairway/queue.sock",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, a []string) error {
			return ask(cmd.Context(), a[0], http.MethodGet, "/report", nil, program.Raw(cmd.OutOrStdout()))
		},
	}
}

// ask sends one request to a queue's control socket and copies the answer.
func ask(ctx context.Context, socket, method, path string, body []byte, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, err := queuesource.Ask(ctx, socket, method, path, body)
	switch {
	case errors.Is(err, queuesource.ErrRefused):
		return program.BadUsage(err)
	case err != nil:
		return program.NoAnswer(err)
	}
	_, err = out.Write(answer)
	return err
}
