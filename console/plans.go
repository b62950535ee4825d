package console

import (
	"fmt"

	"fairway/remap"
)

// plansList lists the plans, the newest first as the server gives them.
var plansList = &listing[PlanRow]{
	page: onPlans, addr: Address{Page: "plans"}, ask: (*asker).plans, noun: "plan",
	head:  " PLAN         STATE          AGE  EXPIRES   WHAT",
	empty: "No plan was ever proposed here. p on a forwarder or a client proposes one.",
	title: func(s *State, _ []PlanRow) string {
		return fmt.Sprintf(" plans   %d waiting for a person", len(s.Shown.Waiting))
	},
	line: func(s *State, r *PlanRow) string {
		expires := ""
		if r.State == remap.Proposed {
			expires = age(r.Expires.Sub(s.Now))
		}
		return " " + left(clean(r.ID), 12) + " " + left(clean(words(r.State)), 13) + right(age(s.Now.Sub(r.Created)),
			5) + right(expires, 9) + "   " + clean(r.Title)
	},
	open: func(r *PlanRow) page { return newPlanPage(r.ID) },
}
