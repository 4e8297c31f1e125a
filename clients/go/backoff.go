package rollcall

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"
)

// The waits before further attempts: 1, 2, 4, 8, then always 16 s, each ±20 %, so that clients that lost their
// connections together do not reconnect together.
const (
	backoffFirst        = time.Second
	backoffMax          = 16 * time.Second
	backoffJitter       = 0.2
	backoffDoublingsMax = 4

	// reconnectAfterMax bounds a wrong value; the server spreads reconnections itself.
	reconnectAfterMax = 10 * time.Minute
)

// backoffDelay counts attempts from 0; random is in [0, 1).
func backoffDelay(attempt int, random float64) time.Duration {
	if attempt > backoffDoublingsMax {
		attempt = backoffDoublingsMax
	}
	base := min(backoffFirst<<attempt, backoffMax)
	return time.Duration(float64(base) * (1 + backoffJitter*(2*random-1)))
}

// retryDelay prefers the delay that the server asks for.
func retryDelay(err error, attempt int, random float64) time.Duration {
	var failure *Error
	if errors.As(err, &failure) && failure.RetryAfter > 0 {
		return min(failure.RetryAfter, reconnectAfterMax)
	}
	return backoffDelay(attempt, random)
}

func min[T int | int64 | time.Duration](a, b T) T {
	if a < b {
		return a
	}
	return b
}

// uniqueID is 128 random bits in hexadecimal.
func uniqueID() string {
	var bytes [16]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		panic(err) // the system has no randomness
	}
	return hex.EncodeToString(bytes[:])
}
