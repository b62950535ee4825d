// Package daemontest runs fairwayd as a process, beside real agents, mounts and queues, and kills and restarts it. It
// holds tests only.
package daemontest
