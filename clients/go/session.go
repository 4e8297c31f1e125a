package rollcall

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"
)

// The life of a connection, from connection_established to its end: heartbeats, token renewal, restoring subscriptions
// and chats, and handling messages. Restoring runs in SYNCING: first the presence subscriptions, then every open chat and
// every chat with a gap. READY follows when the server has answered all of it.
const (
	restoreParallel    = 4  // chats at the same time; more would reach the rate limit
	restoreAttemptsMax = 10 // before OnError reports it
)

func (c *Client) isOpenLocked(early bool) bool {
	return c.state == Ready || early && c.state == Syncing
}

func (c *Client) onEstablishedLocked(connection *connection, text json.RawMessage) {
	var established struct {
		UserID                   string  `json:"user_id"`
		ConnID                   string  `json:"conn_id"`
		HeartbeatIntervalSeconds float64 `json:"heartbeat_interval_seconds"`
		ExpiryWindowSeconds      float64 `json:"expiry_window_seconds"`
		ServerTime               string  `json:"server_time"`
	}
	if err := json.Unmarshal(text, &established); err != nil {
		connection.dropLocked("invalid_message")
		return
	}
	c.userID, c.connectionID = established.UserID, established.ConnID
	c.setStateLocked(StateChange{State: Syncing})
	c.pushLocked("connection_established", text)
	go c.beat(connection, asSeconds(established.HeartbeatIntervalSeconds), asSeconds(established.ExpiryWindowSeconds))
	go c.refreshTokens(connection, clockSkew(established.ServerTime))
	go c.restoreAll(connection)
}

func asSeconds(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// clockSkew is the server's clock minus ours.
func clockSkew(serverTime string) time.Duration {
	if now, err := time.Parse(time.RFC3339, serverTime); err == nil {
		return time.Until(now)
	}
	return 0
}

// beat sends heartbeats. The connection is dead when the first unanswered one is older than the expiry window.
func (c *Client) beat(connection *connection, interval, expiry time.Duration) {
	for {
		c.mu.Lock()
		if connection.unansweredSince.IsZero() {
			connection.unansweredSince = time.Now()
		} else if time.Since(connection.unansweredSince) >= expiry {
			connection.dropLocked("heartbeat_timeout")
			c.mu.Unlock()
			return
		}
		heartbeat := []byte(`{"type":"heartbeat"}`)
		if c.active != nil {
			heartbeat = []byte(`{"type":"heartbeat","active":` + strconv.FormatBool(*c.active) + `}`)
		}
		c.sendLocked(heartbeat)
		wait := min(interval, expiry-time.Since(connection.unansweredSince))
		c.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-connection.beatNow:
		case <-connection.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// refreshTokens sends a fresh token before the present one expires. If that fails until it expires, the server's close
// leads to a new handshake.
func (c *Client) refreshTokens(connection *connection, skew time.Duration) {
	for failures := 0; ; {
		wait, needed := c.tokens.refreshWait(skew)
		if !needed {
			return
		}
		c.mu.Lock()
		if failures > 0 {
			wait = backoffDelay(failures-1, c.random.Float64())
		}
		c.mu.Unlock()
		if !sleep(connection.ctx, wait) {
			return
		}
		failures++
		if c.refreshOnce(connection) {
			failures = 0
		}
	}
}

func (c *Client) refreshOnce(connection *connection) bool {
	token, err := c.tokens.fetch(connection.ctx)
	signedOut := Code(err) == "UNAUTHENTICATED"
	if err == nil {
		_, err = c.request(connection.ctx, "refresh_token", fields{"token": token}, requestKind{early: true})
	}
	if err == nil || connection.ctx.Err() != nil {
		return err == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var failure *Error
	if signedOut && errors.As(err, &failure) {
		c.stopError = failure
		c.stop()
	} else {
		c.emitErrorLocked(err)
	}
	return false
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// restoreAll subscribes to and opens again what the application has asked for.
func (c *Client) restoreAll(connection *connection) {
	c.mu.Lock()
	var users, chats []string
	for user := range c.presences.subscribed {
		users = append(users, user)
	}
	for chatID, log := range c.chats.logs {
		if log.open || len(log.held) > 0 || log.missed {
			chats = append(chats, chatID)
		}
	}
	c.mu.Unlock()
	if len(users) > 0 {
		c.restore(connection, "", 0, func() error {
			_, err := c.requestPresences(connection.ctx, "subscribe_presence", users, requestKind{early: true})
			return err
		})
	}
	c.restoreChats(connection, chats)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connection != connection || c.state != Syncing {
		return
	}
	c.tokenReplaced = false
	connection.readySince = time.Now()
	c.setStateLocked(StateChange{State: Ready})
	c.flushRequestsLocked()
	c.flushOutboxLocked()
	for _, waiter := range c.waiters {
		waiter <- nil
	}
	c.waiters = nil
}

func (c *Client) restoreChats(connection *connection, chats []string) {
	var group sync.WaitGroup
	places := make(chan struct{}, restoreParallel)
	for _, chatID := range chats {
		chatID := chatID
		places <- struct{}{}
		group.Add(1)
		go func() {
			defer group.Done()
			c.restoreChat(connection, chatID)
			<-places
		}()
	}
	group.Wait()
}

// restoreChat has two steps, so that a retry repeats only the request that was refused.
func (c *Client) restoreChat(connection *connection, chatID string) {
	wasOpen := c.isChatOpen(chatID)
	if wasOpen {
		c.restore(connection, chatID, 0, func() error {
			_, err := c.openChat(connection.ctx, chatID, requestKind{early: true})
			return err
		})
	}
	if wasOpen && !c.isChatOpen(chatID) {
		return // refused for good
	}
	c.restore(connection, chatID, 0, func() error {
		_, err := c.Sync(connection.ctx, chatID)
		return err
	})
}

func (c *Client) isChatOpen(chatID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.chats.logs[chatID]
	return log != nil && log.open
}

// pace does work and, while the server says RATE_LIMITED, waits as long as it says and tries again. One at a time, so that
// the chats do not compete for what the server allows.
func (c *Client) pace(connection *connection, work func() error) error {
	err := work()
	if Code(err) != "RATE_LIMITED" {
		return err
	}
	connection.turn.Lock()
	defer connection.turn.Unlock()
	for attempt := 1; attempt < restoreAttemptsMax && Code(err) == "RATE_LIMITED"; attempt++ {
		c.mu.Lock()
		delay := retryDelay(err, attempt-1, c.random.Float64())
		c.mu.Unlock()
		if !sleep(connection.ctx, delay) {
			return err
		}
		err = work()
	}
	return err
}

// restore does work for the subscriptions or a part of one chat, and retries after temporary errors. The caller waits while
// the server says RATE_LIMITED; other retries run in the background, so that a part of the server that is down does not
// delay the rest. After a lost connection, the next one restores instead.
func (c *Client) restore(connection *connection, chatID string, attempt int, work func() error) {
	err := c.pace(connection, work)
	if err == nil || connection.ctx.Err() != nil || Code(err) == "DISCONNECTED" {
		return
	}
	if !isRetryable(err) || Code(err) == "RATE_LIMITED" || attempt+1 >= restoreAttemptsMax {
		c.onRestoreFailed(chatID, err)
		return
	}
	c.mu.Lock()
	delay := retryDelay(err, attempt, c.random.Float64())
	c.mu.Unlock()
	go func() {
		if sleep(connection.ctx, delay) {
			c.restore(connection, chatID, attempt+1, work)
		}
	}()
}

func (c *Client) onRestoreFailed(chatID string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if chatID != "" && !isRetryable(err) {
		c.abandonGapLocked(chatID)
	}
	var failure *Error
	if errors.As(err, &failure) && failure.ChatID == "" {
		failure.ChatID = chatID
	}
	c.emitErrorLocked(err)
}

func (c *Client) onGapLocked(chatID string) {
	connection := c.connection
	if connection == nil {
		return // the next connection restores it
	}
	go c.restore(connection, chatID, 0, func() error {
		_, err := c.Sync(connection.ctx, chatID)
		return err
	})
}

// onMessageLocked updates the caches, whether the message is a reply or a push, and then settles or reports it.
func (c *Client) onMessageLocked(connection *connection, kind string, id *string, text json.RawMessage) {
	connection.unansweredSince = time.Time{}
	if err := c.applyLocked(connection, kind, id, text); err != nil {
		c.emitErrorLocked(newError("INVALID_MESSAGE", kind+": "+err.Error()))
		return
	}
	if id != nil {
		settled := result{reply: text}
		if kind == "error" {
			settled = result{err: errorOf(text)}
		}
		if c.requests.settle(*id, settled) {
			return
		}
	}
	switch kind {
	case "error":
		c.emitErrorLocked(errorOf(text))
	case "heartbeat_ack", "ok", "message", "presence_changed", "presence_snapshot", "chat_snapshot", "typing_changed":
	default:
		c.pushLocked(kind, text)
	}
}

func (c *Client) pushLocked(kind string, text json.RawMessage) {
	if c.options.OnPush != nil {
		c.emitLocked(func() { c.options.OnPush(Push{kind, text}) })
	}
}

func (c *Client) applyLocked(connection *connection, kind string, id *string, text json.RawMessage) (err error) {
	switch kind {
	case "presence_changed":
		var presence Presence
		if err = json.Unmarshal(text, &presence); err == nil {
			c.applyPresenceLocked(presence)
		}
	case "presence_snapshot", "chat_snapshot":
		err = c.applySnapshotLocked(kind, id, text)
	case "message":
		var message Message
		if err = json.Unmarshal(text, &message); err == nil {
			c.offerLocked(message)
		}
	case "typing_changed":
		var typing Typing
		if err = json.Unmarshal(text, &typing); err == nil && c.options.OnTyping != nil {
			c.emitLocked(func() { c.options.OnTyping(typing) })
		}
	case "chat_closed":
		var chat struct {
			ChatID string `json:"chat_id"`
		}
		if err = json.Unmarshal(text, &chat); err == nil && c.chats.logs[chat.ChatID] != nil {
			c.chats.logs[chat.ChatID].open = false
		}
	case "message_deleted":
		var deleted struct {
			ChatID   string `json:"chat_id"`
			Sequence int64  `json:"sequence"`
		}
		if err = json.Unmarshal(text, &deleted); err == nil {
			c.onDeletedLocked(deleted.ChatID, deleted.Sequence)
		}
	case "connection_closing":
		var closing closingMessage
		if err = json.Unmarshal(text, &closing); err == nil {
			c.onClosingLocked(connection, &closing)
			c.markMissedLocked(closing.SyncFromSequence)
		}
	case "sync_required":
		var chats []string
		for chatID, log := range c.chats.logs {
			if log.open || log.last != unknownSequence {
				chats = append(chats, chatID)
			}
		}
		go c.restoreChats(connection, chats)
	}
	return err
}

func (c *Client) applySnapshotLocked(kind string, id *string, text json.RawMessage) error {
	var snapshot ChatSnapshot
	if err := json.Unmarshal(text, &snapshot); err != nil {
		return err
	}
	for _, presence := range snapshot.Presences {
		c.applyPresenceLocked(presence)
	}
	if kind != "chat_snapshot" {
		return nil
	}
	if c.options.OnChat != nil {
		c.emitLocked(func() { c.options.OnChat(snapshot) })
	}
	if id == nil { // nobody asked for it, so it may show messages that this device has not got
		c.expectLocked(snapshot.ChatID, snapshot.LatestSequence)
	}
	return nil
}

func (c *Client) applyPresenceLocked(presence Presence) {
	if c.presences.apply(presence) && c.options.OnPresence != nil {
		c.emitLocked(func() { c.options.OnPresence(presence) })
	}
}
