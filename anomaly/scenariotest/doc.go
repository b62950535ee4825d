// Package scenariotest gives the detectors layers to judge whose truth is known: a scenario, written as
// text or drawn from a seed, is played second by second by a small model of forwarders, and what the
// detectors reported is scored against it.
//
// It holds tests only: no program carries the drawn layers. `make bench-detect` prints what docs/measured.md reports,
// on the machine at hand, in a few minutes.
//
//	closed loops: clients wait for answers         ScoreOfLoops         FAIRWAY_NODES, _SEEDS (how many), _FIRST,
//	                                                                    _FAULT (read_slow, write_slow or meta_slow),
//	                                                                    _PROBE_BUSY=0 (idle nodes and suspects alone)
//	steady load, one forwarder 2 to 20 times slow  SteadyLoops          FAIRWAY_NODES (a list: 8,80), _FIRST
//	open loops, four mixes of work                 ScoreOfSizes         as closed loops, and FAIRWAY_MIX
//	eight forwarders as a daemon records them      ScoreOfASmallSite    FAIRWAY_SEEDS
//	public traces, beside two usual rules          ScoreOfPublic        skipped where the traces are not
//	their closed-loop siblings                     ScoreOfClosedTraces  FAIRWAY_TRACES (where they are written)
//	capped links, by what clients wait on the way  ScoreOfLinks         as closed loops
//
// In the public traces load does not react to slowness. `make bench-detect TRACES=DIR` writes three siblings into DIR
// (bin/traces without it) in which clients wait for answers: closed-a (80 forwarders), closed-b (64) and closed-c (96,
// six neighbours fail at once), an hour each, from fixed seeds, with the same files: samples, backend,
// probe, nodes, jobs and labels.csv. Further faults are times (every request severity times as long), write_slow, and
// client_link (a cap between clients and forwarder, seen in canaries alone and not counted).
//
// # Another detector on the same traces
//
// A detector reads the files of a trace, samples.csv.gz and what it likes of the others, and writes events.csv: the
// header type,node,start,end,detail, then a line for each event. fail_slow is an accusation at start, exclude an
// exclusion from start to end; interference, backend and probe are scored if they are there; an empty end lasts to the
// end of the trace. FAIRWAY_TRACE is a directory or the name of a public trace.
//
//	fairway detect bin/traces/closed-a >events.csv
//	FAIRWAY_TRACE=$PWD/bin/traces/closed-a FAIRWAY_EVENTS=$PWD/events.csv \
//	  go test -v -run ScoreOfEvents ./anomaly/scenariotest
//
// # How it is scored
//
// An accusation is right from the start of a fault of that forwarder to 60 s after its end; repeated ones count once.
// Recall is over observable faults: those that added at least a quarter to execution times for 30 s, with the evidence
// (sum of the squared log ratio over its variance) at 200 or more; strong from 2,000 on. Delay counts from the first
// second of evidence. False alarms are divided by the days of healthy forwarders. Share of fault time excluded counts
// the faults that no detector found, too. A healed forwarder counts as cleared when its accusation ends.
package scenariotest
