package desk

import ()

// FeedChanged is what Watch sends when the list of exclusions has changed.
const FeedChanged = "exclusions"

// FindingsChanged is what Watch sends when a finding has changed.
const FindingsChanged = "findings"
