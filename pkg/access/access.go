package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A Role is what a caller is to the server. A greater one may do all that a smaller one may.
type Role int

const (
	Nobody  Role = iota // has shown no token that is good here, where one is needed
	Agent               // calls tools, on sessions whose id or handle it knows
	Trainer             // and steps through episodes: whoever comes to a simulation that asks for no tokens
	Control             // and sees and ends the sessions of others
)

func (r Role) String() string {
	switch r {
	case Agent:
		return "agent"
	case Trainer:
		return "trainer"
	case Control:
		return "control"
	}
	return "nobody"
}

// A Caller is who sends a request. The zero value is a stranger.
type Caller struct {
	Role Role
	// Name tells callers apart in limits and logs: the role and the number of its token, a subject, or a digest of the handle.
	// It opens nothing. "": a caller who has shown no token.
	Name string
	// Handle is the agent handle that the caller's token opens, and nothing else. "": the token is not one of a handle.
	Handle string
	// Expires is when the token ends, and with it the sockets and streams that the caller has opened. A call that runs is finished.
	// Zero: it does not end by itself.
	Expires time.Time
}

// A Token is a secret. It is not shown when it is printed or logged.
type Token string

// String hides the token.
func (Token) String() string { return "(a token)" }

// GoString hides the token.
func (t Token) GoString() string { return t.String() }

// LogValue hides the token.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the token.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MinToken is how many characters a token must have at least.
const MinToken = 16

// check refuses tokens that are guessed, or that a header cannot carry (RFC 6750, section 2.1).
func (t Token) check() error {
	if len(t) < MinToken {
		return fmt.Errorf("a token of %d characters is too short: want at least %d, such as openssl rand -hex 16 prints", len(t), MinToken)
	}
	for _, c := range string(t) {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=", c) {
			return fmt.Errorf("a token may have letters, digits and -._~+/= and no other characters")
		}
	}
	return nil
}

// A Keeper knows the tokens. Its methods may be called concurrently.
type Keeper struct {
	known []known
	key   []byte // signs the tokens of handles; of this process
}

type known struct {
	digest [sha256.Size]byte
	caller Caller
}

// NewKeeper makes a keeper of the tokens of two roles. The error is about a token that no keeper should have, and does not
// tell it.
func NewKeeper(control, agent []Token) (*Keeper, error) {
	k := &Keeper{key: make([]byte, sha256.Size)}
	rand.Read(k.key)
	add := func(role Role, tokens []Token) error {
		for i, t := range tokens {
			if err := t.check(); err != nil {
				return fmt.Errorf("%v token %d: %w", role, i+1, err)
			}
			digest := sha256.Sum256([]byte(t))
			for _, other := range k.known {
				if other.digest == digest && other.caller.Role != role {
					return fmt.Errorf("%v token %d is %v as well: give each role its own", role, i+1, other.caller.Name)
				}
			}
			k.known = append(k.known, known{digest, Caller{Role: role, Name: fmt.Sprintf("%v-%d", role, i+1)}})
		}
		return nil
	}
	if err := add(Control, control); err != nil {
		return nil, err
	}
	return k, add(Agent, agent)
}

// Empty reports whether the keeper has been given no tokens.
func (k *Keeper) Empty() bool { return len(k.known) == 0 }

// Identify tells whose a token is. handle is what the request is addressed to, or "": a token of a handle is good for
// requests to that handle. How long it takes tells nothing of the tokens.
func (k *Keeper) Identify(token, handle string) (Caller, bool) {
	digest := sha256.Sum256([]byte(token))
	var found Caller
	for _, other := range k.known { // all of them, so that none is told by the time
		if subtle.ConstantTimeCompare(digest[:], other.digest[:]) == 1 {
			found = other.caller
		}
	}
	if found.Role == Nobody && handle != "" {
		if expires, ok := k.opens(token, handle); ok {
			name := sha256.Sum256([]byte(handle))
			found = Caller{Role: Agent, Name: "handle-" + hex.EncodeToString(name[:4]), Handle: handle, Expires: expires}
		}
	}
	return found, found.Role != Nobody
}

// ofHandle begins the tokens of handles, so that who finds one in a log knows what it is.
const ofHandle = "openenv_"

// Mint makes a token that opens an agent handle for that long, and nothing else. It needs no memory: it is signed, and worth
// nothing when the handle has ended.
func (k *Keeper) Mint(handle string, d time.Duration) (Token, time.Time) {
	expires := time.Now().Add(d + time.Second - 1).Truncate(time.Second) // not before d is over
	b := binary.BigEndian.AppendUint64(nil, uint64(expires.Unix()))
	return Token(ofHandle + base64.RawURLEncoding.EncodeToString(k.sign(b, handle))), expires
}

// sign appends the signature of an expiry and a handle to the expiry.
func (k *Keeper) sign(expires []byte, handle string) []byte {
	mac := hmac.New(sha256.New, k.key)
	mac.Write(expires)
	mac.Write([]byte(handle))
	return mac.Sum(expires)
}

// opens reports whether a token is one of a handle, and until when.
func (k *Keeper) opens(token, handle string) (until time.Time, ok bool) {
	text, ok := strings.CutPrefix(token, ofHandle)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) != 8+sha256.Size {
		return time.Time{}, false
	}
	until = time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	return until, hmac.Equal(b, k.sign(b[:8:8], handle)) && time.Now().Before(until)
}
