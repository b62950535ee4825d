package watch

import (
	"fmt"
	"time"

	"fairway/anomaly"
	"fairway/collector/ingest"
)

// speakerFor is how long a second speaker that was refused counts as present: longer than an agent waits between tries.
const speakerFor = time.Minute

// speakerVerdicts report whoever spoke for a node that has another speaker. Nothing of what he brought was taken.
func (s *silence) speakerVerdicts(now time.Time) (out []anomaly.Verdict) {
	if s.intruders == nil {
		return nil
	}
	for _, i := range s.intruders(now.Add(-speakerFor)) {
		sentence := fmt.Sprintf("%s with the token %q speaks for %s, which has a speaker already, at %s; refused %s",
			i.Remote, i.Token, i.Node, i.Owner, counted(int(i.Times), "time", "times"))
		kind := anomaly.SecondSpeaker
		if i.Owner == "" {
			kind = anomaly.LongList
			sentence = fmt.Sprintf("%s with the token %q lists more clients of %s than can be; left out %s; if they "+
				"exist, name the compute nodes in the settings", i.Remote, i.Token, i.Node,
				counted(int(i.Times), "time", "times"))
		}
		out = append(out, anomaly.Verdict{Node: i.Node, Kind: kind, Level: anomaly.Alarm,
			Since:      i.First,
			Confidence: 1, Score: float64(i.Times), Model: "speaker-1",
			Evidence: map[string]float64{"refused": float64(i.Times)},
			Sentence: sentence})
	}
	return out
}

// Speakers has the detectors ask who has spoken for others' nodes since a time. It is called before the first second.
func (d *Detectors) Speakers(of func(since time.Time) []ingest.Intruder) { d.silence.intruders = of }
