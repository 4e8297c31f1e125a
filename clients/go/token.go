package rollcall

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

const (
	// The next token is fetched this long before the present one expires,
	refreshMargin = time.Minute
	// or, if the token expires sooner, after this part of the remaining time,
	refreshShortLifePart = 0.5
	// but not before this, in case GetToken keeps returning tokens that are about to expire.
	refreshPauseMin = time.Second
	// A token that expires this soon is not used for a handshake.
	expirySlack = 2 * time.Second
)

// tokenExpiry reads only `exp`; the server verifies tokens. It returns false if the token has none.
func tokenExpiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) < 2 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	var claims struct{ Exp *float64 }
	if json.Unmarshal(payload, &claims) != nil || claims.Exp == nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(*claims.Exp * 1000)), true
}

// tokenSource has the present token and, if the application has a GetToken, the source of the next.
type tokenSource struct {
	mu    sync.Mutex
	token string
	get   func(ctx context.Context) (string, error)
}

func (s *tokenSource) present() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// current returns a token for a handshake: the present one until it expires, else a fresh one.
func (s *tokenSource) current(ctx context.Context) (string, error) {
	token := s.present()
	expiry, expires := tokenExpiry(token)
	if token != "" && (!expires || time.Until(expiry) > expirySlack) {
		return token, nil
	}
	if s.get == nil {
		return "", newError("UNAUTHENTICATED", "the token has expired")
	}
	return s.fetch(ctx)
}

func (s *tokenSource) fetch(ctx context.Context) (string, error) {
	if s.get == nil {
		return "", newError("UNAUTHENTICATED", "there is no GetToken for a new token")
	}
	token, err := s.get(ctx)
	if err == nil && token == "" {
		err = newError("UNAUTHENTICATED", "GetToken returned no token")
	}
	if err == nil {
		s.replace(token)
	}
	return token, err
}

func (s *tokenSource) replace(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// discard forgets a token that the server refused; it returns false if there is no other.
func (s *tokenSource) discard() bool {
	if s.get == nil {
		return false
	}
	s.replace("")
	return true
}

// refreshWait returns how long until the next refresh, and whether there is one. skew is the server's clock minus ours:
// the server's decides when a token expires.
func (s *tokenSource) refreshWait(skew time.Duration) (time.Duration, bool) {
	expiry, expires := tokenExpiry(s.present())
	if s.get == nil || !expires {
		return 0, false
	}
	left := time.Until(expiry) - skew
	wait := left - refreshMargin
	if short := time.Duration(float64(left) * refreshShortLifePart); short > wait {
		wait = short
	}
	if wait < refreshPauseMin {
		wait = refreshPauseMin
	}
	return wait, true
}
