package console

import (
	"context"
	"fmt"

	"fairway/remap"
	"fairway/webui/api"
)

// plansList lists the plans, the newest first as the server gives them.
var plansList = &Listing[api.PlanRow]{
	Screen: onPlans, At: Address{Page: "plans"}, Ask: func(ctx context.Context, b Backend) ([]api.PlanRow, error) { return b.Plans(ctx) }, Noun: "plan",
	Head:  " PLAN         STATE          AGE  EXPIRES   WHAT",
	Empty: "No plan was ever proposed here. p on a forwarder or a client proposes one.",
	Title: func(s *State, _ []api.PlanRow) string {
		return fmt.Sprintf(" plans   %d waiting for a person", len(s.Shown.Waiting))
	},
	Line: func(s *State, r *api.PlanRow) string {
		expires := ""
		if r.State == remap.Proposed {
			expires = age(r.Expires.Sub(s.Now))
		}
		return " " + left(clean(r.ID), 12) + " " + left(clean(words(r.State)), 13) + right(age(s.Now.Sub(r.Created)),
			5) + right(expires, 9) + "   " + clean(r.Title)
	},
	Open: func(r *api.PlanRow) Address { return AtPlan(r.ID) },
}
