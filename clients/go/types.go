package rollcall

import (
	"encoding/json"
	"time"
)

// State of a connection.
type State string

// The states; link.go has the transitions.
const (
	Disconnected State = "DISCONNECTED"
	Connecting   State = "CONNECTING"
	Syncing      State = "SYNCING"
	Ready        State = "READY"
	Closing      State = "CLOSING"
	Backoff      State = "BACKOFF"
)

// StateChange is reported to OnState.
type StateChange struct {
	State, Previous State
	Reason          string
	// CloseCode of the WebSocket, where there was one.
	CloseCode int
	// Delay until the next attempt, on BACKOFF.
	Delay time.Duration
	// Final: no further attempt will be made, and Err says why.
	Final bool
	Err   error
}

// Presence of a user. Version grows with every change of that user; it is 0 where the status is "unknown".
type Presence struct {
	UserID      string  `json:"user_id"`
	Status      string  `json:"status"`
	InCall      bool    `json:"in_call"`
	LastSeen    *string `json:"last_seen"`
	Version     int64   `json:"version"`
	Reason      string  `json:"reason,omitempty"`
	Stale       bool    `json:"stale,omitempty"`
	Timestamp   string  `json:"timestamp,omitempty"`
	DisplayName *string `json:"display_name,omitempty"`
	AvatarURL   *string `json:"avatar_url,omitempty"`
}

// Message of a chat. Sequence is dense within the chat, from 1. A deleted message has no body, a system message no
// sender. ClientMessageID is set on messages that this client sent.
type Message struct {
	ChatID          string  `json:"chat_id"`
	MessageID       string  `json:"message_id"`
	Sequence        int64   `json:"sequence"`
	SenderID        *string `json:"sender_id"`
	Body            string  `json:"body"`
	SentAt          string  `json:"sent_at"`
	Deleted         bool    `json:"deleted,omitempty"`
	ClientMessageID string  `json:"client_message_id,omitempty"`
}

// MessageAck acknowledges a message. Duplicate: the server had stored it already; BodyDiffers: with another body, which
// it keeps.
type MessageAck struct {
	ChatID          string `json:"chat_id"`
	ClientMessageID string `json:"client_message_id"`
	MessageID       string `json:"message_id"`
	Sequence        int64  `json:"sequence"`
	Duplicate       bool   `json:"duplicate"`
	BodyDiffers     bool   `json:"body_differs,omitempty"`
}

// ChatSnapshot is the state of a chat when it was opened.
type ChatSnapshot struct {
	ChatID         string     `json:"chat_id"`
	Presences      []Presence `json:"presences"`
	Typing         []string   `json:"typing"`
	LatestSequence int64      `json:"latest_sequence"`
}

// MessagePage is a page of a chat's history.
type MessagePage struct {
	Messages       []Message `json:"messages"`
	HasMore        bool      `json:"has_more"`
	LatestSequence int64     `json:"latest_sequence"`
}

// Typing tells that a user types in a chat, or has stopped.
type Typing struct {
	ChatID string `json:"chat_id"`
	UserID string `json:"user_id"`
	Typing bool   `json:"typing"`
}

// Chat is a conversation, as its members see it.
type Chat struct {
	ChatID         string           `json:"chat_id"`
	Kind           string           `json:"kind"`
	Members        []string         `json:"members"`
	Admins         []string         `json:"admins"`
	MembersCanAdd  bool             `json:"members_can_add"`
	LatestSequence int64            `json:"latest_sequence"`
	Unread         int64            `json:"unread"`
	LastActivity   string           `json:"last_activity,omitempty"`
	Read           map[string]int64 `json:"read,omitempty"`
}

// ContactRequest is a request that waits, with From or To.
type ContactRequest struct {
	ID        string `json:"id"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Status    string `json:"status,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
}

// Push is any message of the server that has no callback of its own.
type Push struct {
	Type string
	Raw  json.RawMessage
}

// Decode reads the fields of the push.
func (p Push) Decode(into any) error { return json.Unmarshal(p.Raw, into) }
