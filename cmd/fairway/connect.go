package main

import (
	"fmt"
	"os"
	"strings"

	"fairway/console"
	"fairway/webui/client"
)

// connect makes the client of the daemon that the flags name.
func (o *options) connect() (*client.Client, error) {
	token := ""
	if o.tokenFile != "" {
		b, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("token file: %w", err)
		}
		if token = strings.TrimSpace(string(b)); token == "" {
			return nil, fmt.Errorf("token file %s: %w: it is empty", o.tokenFile, console.ErrInvalid)
		}
	}
	return client.New(o.addr, token)
}
