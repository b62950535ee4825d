package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"fairway/remap"
	"fairway/webui/api"
)

// callerHeader says who asks, in a request that one daemon of a cluster passes on to another.
const callerHeader = "Fairway-Caller"

// caller is what crosses.
type caller struct {
	Person remap.Person `json:"person"`
	Remote string       `json:"remote"`
}

// PassOn prepares a request of by for another daemon: it says who asks instead of proving it. The daemons have proved
// themselves to each other.
func PassOn(r *http.Request, by Caller) {
	for _, name := range []string{"Authorization", "Cookie", SecretHeader, "Origin", "Sec-Fetch-Site", callerHeader} {
		r.Header.Del(name)
	}
	b, err := json.Marshal(caller{by.Person, by.Remote})
	if err != nil {
		panic("BUG: a caller cannot be encoded: " + err.Error())
	}
	r.Header.Set(callerHeader, base64.StdEncoding.EncodeToString(b))
}

// passedOn is who another daemon says that a request is from.
func passedOn(r *http.Request) (Caller, error) {
	var c caller
	b, err := base64.StdEncoding.DecodeString(r.Header.Get(callerHeader))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return Caller{}, fmt.Errorf("%w: another daemon does not say who asks: %w", api.ErrSignIn, err)
	}
	return Caller{Person: c.Person, Remote: c.Remote}, nil
}
