package plan

import (
	"fmt"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
)

// List lists the plans, the newest first as the server gives them.
var List = &screen.Listing[api.PlanRow]{
	Screen: screen.OnPlans, At: screen.Address{Page: "plans"},
	Ask: (*client.Client).Plans, Noun: "plan",
	Head:  " PLAN         STATE          AGE  EXPIRES   WHAT",
	Empty: "No plan was ever proposed here. p on a forwarder or a client proposes one.",
	Title: func(s *screen.State, _ []api.PlanRow) string {
		return fmt.Sprintf(" plans   %d waiting for a person", len(s.Shown.Waiting))
	},
	Line: func(s *screen.State, r *api.PlanRow) string {
		expires := ""
		if r.State == remap.Proposed {
			expires = chart.Age(r.Expires.Sub(s.Now))
		}
		return " " + chart.Left(chart.Clean(r.ID), 12) + " " + chart.Left(chart.Clean(words(r.State)), 13) +
			chart.Right(chart.Age(s.Now.Sub(r.Created)),
				5) + chart.Right(expires, 9) + "   " + chart.Clean(r.Title)
	},
	Open: func(r *api.PlanRow) screen.Address { return screen.AtPlan(r.ID) },
}
