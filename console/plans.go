package console

import (
	"fmt"

	"fairway/remap"
	"fairway/webui/api"
)

// plansList lists the plans, the newest first as the server gives them.
var plansList = &listing[api.PlanRow]{
	page: onPlans, addr: Address{Page: "plans"}, ask: (*asker).plans, noun: "plan",
	head:  " PLAN         STATE          AGE  EXPIRES   WHAT",
	empty: "No plan was ever proposed here. p on a forwarder or a client proposes one.",
	title: func(s *State, _ []api.PlanRow) string {
		return fmt.Sprintf(" plans   %d waiting for a person", len(s.Shown.Waiting))
	},
	line: func(s *State, r *api.PlanRow) string {
		expires := ""
		if r.State == remap.Proposed {
			expires = age(r.Expires.Sub(s.Now))
		}
		return " " + left(clean(r.ID), 12) + " " + left(clean(words(r.State)), 13) + right(age(s.Now.Sub(r.Created)),
			5) + right(expires, 9) + "   " + clean(r.Title)
	},
	open: func(r *api.PlanRow) page { return newPlanPage(r.ID) },
}
