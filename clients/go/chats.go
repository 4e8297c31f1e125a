package rollcall

import (
	"context"
	"encoding/json"
)

const (
	// trackedChatsMax bounds the chats tracked. Beyond it, one that is not open is dropped.
	trackedChatsMax = 1000
	// heldMessagesMax bounds the messages held per chat behind a gap. Beyond it they are dropped: the sync fetches them again.
	heldMessagesMax = 500

	unknownSequence = -1
)

// chatLog delivers every message of a chat once, and in order. Sequences are dense, so a gap means a missed message: later
// messages are held until a sync has filled the gap. A chat that was neither opened nor synced starts with its first
// message that arrives.
//
//	offer(n)   n <= last: dropped as a duplicate      n == last + 1: delivered      n > last + 1: held, and a sync starts
type chatLog struct {
	last    int64
	held    map[int64]Message
	open    bool
	missed  bool
	syncing *syncRun
}

type syncRun struct {
	done chan struct{}
	last int64
	err  error
}

type chatLogs struct{ logs map[string]*chatLog }

func (chats *chatLogs) log(chatID string) *chatLog {
	log := chats.logs[chatID]
	if log == nil {
		log = &chatLog{last: unknownSequence, held: map[int64]Message{}}
		chats.dropSurplus()
		chats.logs[chatID] = log
	}
	return log
}

func (chats *chatLogs) dropSurplus() {
	if len(chats.logs) < trackedChatsMax {
		return
	}
	for chatID, log := range chats.logs {
		if !log.open && log.syncing == nil {
			delete(chats.logs, chatID)
			return
		}
	}
}

func (log *chatLog) lowestHeld() (lowest int64, any bool) {
	for sequence := range log.held {
		if !any || sequence < lowest {
			lowest, any = sequence, true
		}
	}
	return lowest, any
}

// release returns the messages that can be delivered now.
func (log *chatLog) release() (ready []Message) {
	for sequence := range log.held {
		if sequence <= log.last {
			delete(log.held, sequence)
		}
	}
	for {
		message, ok := log.held[log.last+1]
		if !ok {
			return ready
		}
		delete(log.held, message.Sequence)
		log.last = message.Sequence
		ready = append(ready, message)
	}
}

func (c *Client) deliverLocked(messages []Message) {
	if c.options.OnMessage == nil {
		return
	}
	for _, message := range messages {
		message := message
		c.emitLocked(func() { c.options.OnMessage(message) })
	}
}

// beginLocked starts a chat that was opened for the first time without a sequence at the server's latest one.
func (c *Client) beginLocked(chatID string, latest int64) *chatLog {
	log := c.chats.log(chatID)
	if log.last == unknownSequence {
		log.last = latest
		if lowest, any := log.lowestHeld(); any && lowest-1 < latest {
			log.last = lowest - 1
		}
	}
	c.deliverLocked(log.release())
	return log
}

func (c *Client) offerLocked(message Message) {
	log := c.chats.log(message.ChatID)
	if log.last == unknownSequence && !log.open {
		log.last = message.Sequence - 1
	}
	if log.last != unknownSequence && message.Sequence <= log.last {
		return
	}
	if len(log.held) < heldMessagesMax || message.Sequence == log.last+1 {
		log.held[message.Sequence] = message
	}
	if log.last == unknownSequence {
		return
	}
	c.deliverLocked(log.release())
	if len(log.held) > 0 && log.syncing == nil {
		c.onGapLocked(message.ChatID)
	}
}

// onDeletedLocked: a message was deleted. If it is held behind a gap, it is delivered without its body.
func (c *Client) onDeletedLocked(chatID string, sequence int64) {
	log := c.chats.logs[chatID]
	if log == nil {
		return
	}
	if message, isHeld := log.held[sequence]; isHeld {
		message.Body, message.Deleted = "", true
		log.held[sequence] = message
	}
}

// expectLocked: the server has a message with this sequence that only a sync can fetch.
func (c *Client) expectLocked(chatID string, sequence int64) {
	log := c.chats.log(chatID)
	if log.last == unknownSequence && !log.open {
		log.last = sequence - 1
	}
	if log.last == unknownSequence || sequence <= log.last {
		return
	}
	log.missed = true
	if log.syncing == nil {
		c.onGapLocked(chatID)
	}
}

// abandonGapLocked skips the gap of a chat whose sync was refused for good.
func (c *Client) abandonGapLocked(chatID string) {
	log := c.chats.logs[chatID]
	if log == nil {
		return
	}
	log.open, log.missed = false, false
	if lowest, any := log.lowestHeld(); any {
		log.last = lowest - 1
		c.deliverLocked(log.release())
	}
}

// markMissedLocked takes sync_from_sequence of a closing connection: chats whose messages the server dropped.
func (c *Client) markMissedLocked(syncAfter map[string]int64) {
	for chatID, sequence := range syncAfter {
		log := c.chats.log(chatID)
		log.missed = true
		if log.last == unknownSequence && sequence >= 0 {
			log.last = sequence
		}
	}
}

// Sync fetches missed messages of a chat for OnMessage, and returns the last sequence. One sync per chat runs at a time.
func (c *Client) Sync(ctx context.Context, chatID string) (int64, error) {
	c.mu.Lock()
	log := c.chats.log(chatID)
	run := log.syncing
	if run == nil {
		run = &syncRun{done: make(chan struct{})}
		log.syncing = run
		if log.last == unknownSequence {
			log.last = 0
		}
		go c.catchUp(chatID, log, run)
	}
	c.mu.Unlock()
	select {
	case <-run.done:
		return run.last, run.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (c *Client) catchUp(chatID string, log *chatLog, run *syncRun) {
	more := true
	for more && run.err == nil {
		more, run.err = c.syncPage(chatID, log)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if run.err == nil {
		log.missed = false
	}
	run.last = log.last
	log.syncing = nil
	close(run.done)
}

// syncPage fetches one page and returns whether there must be another.
func (c *Client) syncPage(chatID string, log *chatLog) (more bool, err error) {
	c.mu.Lock()
	before := log.last
	c.mu.Unlock()
	args := fields{"chat_id": chatID, "after_sequence": before}
	reply, err := c.request(context.Background(), "sync_request", args, requestKind{early: true})
	if err != nil {
		return false, err
	}
	page, err := decode[MessagePage](reply)
	if err != nil {
		return false, newError("INVALID_MESSAGE", err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, message := range page.Messages {
		c.offerLocked(message)
	}
	if page.HasMore {
		if log.last == before {
			return false, &Error{Code: "INVALID_MESSAGE", Message: "the sync does not advance", ChatID: chatID}
		}
		return true, nil
	}
	// If a complete sync left a gap, there are no messages in the gap.
	if lowest, any := log.lowestHeld(); any && lowest <= page.LatestSequence+1 {
		log.last = lowest - 1
		c.deliverLocked(log.release())
	}
	if len(log.held) > 0 && log.last == before {
		return false, &Error{Code: "SERVICE_UNAVAILABLE", Message: "the sync lags behind", ChatID: chatID}
	}
	return len(log.held) > 0, nil
}

// Latest starts a chat that is opened for the first time with the next message.
const Latest int64 = unknownSequence

// OpenChat opens a chat until CloseChat, also after reconnects. Its messages come to OnMessage, those after
// afterSequence; with Latest, those from now on.
func (c *Client) OpenChat(ctx context.Context, chatID string, afterSequence int64) (ChatSnapshot, error) {
	c.mu.Lock()
	log := c.chats.log(chatID)
	log.open = true
	if afterSequence != Latest {
		log.last = afterSequence
	}
	c.mu.Unlock()
	snapshot, err := c.openChat(ctx, chatID, requestKind{idempotent: true})
	if err != nil && !isRetryable(err) {
		c.markClosed(chatID)
	}
	return snapshot, err
}

func (c *Client) openChat(ctx context.Context, chatID string, kind requestKind) (ChatSnapshot, error) {
	reply, err := c.request(ctx, "open_chat", fields{"chat_id": chatID}, kind)
	if err != nil {
		return ChatSnapshot{}, err
	}
	snapshot, err := decode[ChatSnapshot](reply)
	if err != nil {
		return snapshot, newError("INVALID_MESSAGE", err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.beginLocked(chatID, snapshot.LatestSequence)
	if log.last < snapshot.LatestSequence && !kind.early {
		c.onGapLocked(chatID)
	}
	return snapshot, nil
}

// CloseChat ends what OpenChat began.
func (c *Client) CloseChat(ctx context.Context, chatID string) error {
	c.markClosed(chatID)
	_, err := c.request(ctx, "close_chat", fields{"chat_id": chatID}, requestKind{idempotent: true})
	return err
}

func (c *Client) markClosed(chatID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if log := c.chats.logs[chatID]; log != nil {
		log.open = false
	}
}

// FetchMessages returns one page of a chat's messages; OnMessage does not get them.
func (c *Client) FetchMessages(ctx context.Context, chatID string, afterSequence int64, limit int) (MessagePage, error) {
	args := fields{"chat_id": chatID, "after_sequence": afterSequence}
	if limit > 0 {
		args["limit"] = limit
	}
	reply, err := c.request(ctx, "sync_request", args, requestKind{idempotent: true})
	if err != nil {
		return MessagePage{}, err
	}
	return decode[MessagePage](reply)
}

// Typing reports that the user types or has stopped. It returns false if not connected; it is not kept.
func (c *Client) Typing(chatID string, typing bool) bool {
	command := "typing_stop"
	if typing {
		command = "typing_start"
	}
	return c.sendNow(fields{"type": command, "chat_id": chatID})
}

// Ack moves the user's read mark: others who have the chat open get a receipt. It returns false if not connected.
func (c *Client) Ack(chatID string, sequence int64) bool {
	return c.sendNow(fields{"type": "ack", "chat_id": chatID, "sequence": sequence})
}

func (c *Client) sendNow(frame fields) bool {
	text, err := json.Marshal(frame)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == Ready && c.sendLocked(text)
}

// SendEvent sends an event of the application to its server and returns the data of the acknowledgement.
func (c *Client) SendEvent(ctx context.Context, name string, data any) (json.RawMessage, error) {
	reply, err := c.request(ctx, "event", fields{"name": name, "data": data}, requestKind{})
	if err != nil {
		return nil, err
	}
	acknowledged, err := decode[struct {
		Data json.RawMessage `json:"data"`
	}](reply)
	return acknowledged.Data, err
}

// RequestCall rings a contact and returns the call's id; an empty callID lets the server choose.
func (c *Client) RequestCall(ctx context.Context, to, callID string) (string, error) {
	args := fields{"to": to}
	if callID != "" {
		args["call_id"] = callID
	}
	reply, err := c.request(ctx, "call_request", args, requestKind{})
	if err != nil {
		return "", err
	}
	call, err := decode[struct {
		CallID string `json:"call_id"`
	}](reply)
	return call.CallID, err
}

// AcceptCall accepts a call that rings.
func (c *Client) AcceptCall(ctx context.Context, callID string) error {
	return c.callCommand(ctx, "call_accept", callID)
}

// RejectCall rejects a call that rings.
func (c *Client) RejectCall(ctx context.Context, callID string) error {
	return c.callCommand(ctx, "call_reject", callID)
}

// EndCall ends a call, ringing or not.
func (c *Client) EndCall(ctx context.Context, callID string) error {
	return c.callCommand(ctx, "call_end", callID)
}

func (c *Client) callCommand(ctx context.Context, command, callID string) error {
	_, err := c.request(ctx, command, fields{"call_id": callID}, requestKind{})
	return err
}

// Signal sends an offer, an answer or a candidate to the other side. It returns false if not connected.
func (c *Client) Signal(callID string, data any) bool {
	return c.sendNow(fields{"type": "call_signal", "call_id": callID, "data": data})
}
