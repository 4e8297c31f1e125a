package rollcall

import (
	"encoding/json"
	"errors"
	"time"
)

// Error is what the server refused, or the client could not do. The server's codes are passed on unchanged. The client
// adds four of its own:
//
//	TIMEOUT        no reply within the time limit; the request may or may not have taken effect
//	DISCONNECTED   the connection was lost before the reply; the request may have taken effect
//	QUEUE_FULL     a limit of this client was reached; nothing was sent
//	CLOSED         Close was called, or the server does not allow reconnecting
type Error struct {
	Code    string
	Message string
	// RetryAfter is how long the server asks to wait, or 0.
	RetryAfter      time.Duration
	ClientMessageID string
	ChatID          string
	// Status is the HTTP status, of a REST answer.
	Status int
}

func newError(code, message string) *Error { return &Error{Code: code, Message: message} }

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Retryable tells whether the same request may succeed a little later.
func (e *Error) Retryable() bool {
	switch e.Code {
	case "RATE_LIMITED", "SERVER_BUSY", "SERVICE_UNAVAILABLE", "TIMEOUT", "QUEUE_FULL":
		return true
	}
	return false
}

// Code returns the code of an error of this package, or "".
func Code(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}

func isRetryable(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Retryable()
}

type errorMessage struct {
	Code               string  `json:"code"`
	Message            string  `json:"message"`
	ClientMessageID    string  `json:"client_message_id"`
	ChatID             string  `json:"chat_id"`
	RetryAfterSeconds  float64 `json:"retry_after_seconds"`
	GracePeriodSeconds float64 `json:"grace_period_seconds"`
}

func (m errorMessage) asError() *Error {
	seconds := m.RetryAfterSeconds
	if seconds == 0 {
		seconds = m.GracePeriodSeconds
	}
	return &Error{Code: m.Code, Message: m.Message, RetryAfter: time.Duration(seconds * float64(time.Second)),
		ClientMessageID: m.ClientMessageID, ChatID: m.ChatID}
}

// errorOf makes the error for an `error` message of the server.
func errorOf(raw json.RawMessage) *Error {
	message := errorMessage{Code: "INVALID_MESSAGE", Message: "refused"}
	_ = json.Unmarshal(raw, &message) // what cannot be read keeps the default
	return message.asError()
}
