package console

import (
	"strconv"
	"strings"
)

// auditList is the append-only record of who did what, the newest first.
var auditList = &listing[AuditEntry]{
	page: onAudit, addr: Address{Page: "audit"}, ask: (*asker).audit, noun: "entry",
	head:  "     SEQ  TIME          WHO             WHAT           SUBJECT      RESULT        REASON",
	empty: "Nothing was done here yet. What is proposed, approved, applied, rolled back or excluded is kept here for ever.",
	title: func(_ *State, rows []AuditEntry) string {
		if len(rows) == auditRows {
			return " audit   the newest; fairway audit has all"
		}
		return " audit   who did what, newest first"
	},
	line: func(s *State, r *AuditEntry) string {
		return right(strconv.FormatUint(r.Seq, 10), 8) + "  " + left(moment(r.At, s.Now), 14) + left(clean(r.Actor), 15) + " " + left(clean(r.Action), 15) +
			left(clean(r.Subject), 13) + left(clean(r.Result), 14) + clean(r.Reason)
	},
	open: func(r *AuditEntry) page {
		if strings.HasPrefix(r.Subject, "P-") {
			return newPlanPage(r.Subject)
		}
		return nil
	},
}

// auditRows is how many entries the page asks for.
const auditRows = 500
