package rollcall

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// outboxMax bounds unacknowledged messages in all chats together. Beyond it: QUEUE_FULL.
	outboxMax = 100
	// sendAttemptsMax bounds the attempts before a message fails; lost connections do not count.
	sendAttemptsMax = 10
)

// Sending is a message that waits for its acknowledgement.
type Sending struct {
	chatID, clientMessageID, body string
	attempts                      int
	done                          chan struct{}
	ack                           MessageAck
	err                           error
}

// Wait returns the acknowledgement. If ctx ends first, the message stays in the outbox and is still sent.
func (s *Sending) Wait(ctx context.Context) (MessageAck, error) {
	select {
	case <-s.done:
		return s.ack, s.err
	case <-ctx.Done():
		return MessageAck{}, ctx.Err()
	}
}

type sendQueue struct {
	entries  []*Sending
	draining bool
}

// outbox has the messages that the server has not acknowledged yet. A message leaves it when the server has acknowledged
// it or refused it for good. Until then it is sent again, with the same client message id, after a lost connection, a
// missing reply and every temporary error; the server recognises the repetition. One message per chat is in flight, so
// that the next cannot overtake a retry.
//
// The server limits a user's messages in all chats together. After RATE_LIMITED the chats take turns, one message at a
// time, each after the time that the server names. Such a refusal does not count as a failed attempt.
type outbox struct {
	queues    map[string]*sendQueue
	size      int
	isLimited bool
	waiting   int
	turns     sync.Mutex
}

// SendMessage returns the acknowledgement; it repeats the message over as many connections as needed.
func (c *Client) SendMessage(ctx context.Context, chatID, body string) (MessageAck, error) {
	sending, err := c.QueueMessage(chatID, body, "")
	if err != nil {
		return MessageAck{}, err
	}
	return sending.Wait(ctx)
}

// QueueMessage takes a message, in the order of the calls, and returns at once. An empty clientMessageID is replaced by a
// random one.
func (c *Client) QueueMessage(chatID, body, clientMessageID string) (*Sending, error) {
	if clientMessageID == "" {
		clientMessageID = uniqueID()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outbox.size >= outboxMax {
		return nil, &Error{Code: "QUEUE_FULL", Message: fmt.Sprintf("%d messages are unacknowledged", outboxMax),
			ClientMessageID: clientMessageID}
	}
	entry := &Sending{chatID: chatID, clientMessageID: clientMessageID, body: body, done: make(chan struct{})}
	queue := c.outbox.queues[chatID]
	if queue == nil {
		queue = &sendQueue{}
		c.outbox.queues[chatID] = queue
	}
	queue.entries = append(queue.entries, entry)
	c.outbox.size++
	c.startDrainLocked(queue)
	return entry, nil
}

// flushOutboxLocked resumes after a reconnect.
func (c *Client) flushOutboxLocked() {
	for _, queue := range c.outbox.queues {
		c.startDrainLocked(queue)
	}
}

func (c *Client) failOutboxLocked(err error) {
	for chatID, queue := range c.outbox.queues {
		for _, entry := range queue.entries {
			entry.err = err
			close(entry.done)
		}
		queue.entries = nil
		delete(c.outbox.queues, chatID)
	}
	c.outbox.size = 0
	c.outbox.isLimited = false
}

func (c *Client) startDrainLocked(queue *sendQueue) {
	if !queue.draining && c.state == Ready {
		queue.draining = true
		go c.drain(queue)
	}
}

func (c *Client) drain(queue *sendQueue) {
	for {
		c.mu.Lock()
		if len(queue.entries) == 0 || c.state != Ready {
			queue.draining = false
			if len(queue.entries) == 0 {
				c.removeQueueLocked(queue)
			}
			c.mu.Unlock()
			return
		}
		entry, inTurn := queue.entries[0], c.outbox.isLimited
		if inTurn {
			c.outbox.waiting++
		}
		c.mu.Unlock()
		if inTurn {
			c.attemptInTurn(queue, entry)
		} else {
			c.attemptSend(queue, entry)
		}
	}
}

func (c *Client) removeQueueLocked(queue *sendQueue) {
	for chatID, each := range c.outbox.queues {
		if each == queue {
			delete(c.outbox.queues, chatID)
		}
	}
}

func (c *Client) attemptInTurn(queue *sendQueue, entry *Sending) {
	c.outbox.turns.Lock()
	c.attemptSend(queue, entry)
	c.outbox.turns.Unlock()
	c.mu.Lock()
	c.outbox.waiting--
	c.outbox.isLimited = c.outbox.isLimited && c.outbox.waiting > 0
	c.mu.Unlock()
}

func (c *Client) attemptSend(queue *sendQueue, entry *Sending) {
	ack, err := c.sendEntry(entry)
	if err == nil {
		c.endSend(queue, entry, ack, nil)
	} else if Code(err) != "DISCONNECTED" {
		c.onSendRefused(queue, entry, err)
	}
}

func (c *Client) onSendRefused(queue *sendQueue, entry *Sending, err error) {
	var failure *Error
	isLimited := errors.As(err, &failure) && failure.Code == "RATE_LIMITED" && failure.RetryAfter > 0
	c.mu.Lock()
	if isLimited {
		c.outbox.isLimited = true
	} else {
		entry.attempts++
	}
	attempt := entry.attempts - 1
	if attempt < 0 {
		attempt = 0
	}
	delay := retryDelay(err, attempt, c.random.Float64())
	c.mu.Unlock()
	if isRetryable(err) && entry.attempts < sendAttemptsMax {
		select {
		case <-time.After(delay):
		case <-entry.done: // the client was closed
		}
		return
	}
	c.endSend(queue, entry, MessageAck{}, err)
}

func (c *Client) endSend(queue *sendQueue, entry *Sending, ack MessageAck, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(queue.entries) == 0 || queue.entries[0] != entry { // the client was closed
		return
	}
	queue.entries = queue.entries[1:]
	c.outbox.size--
	entry.ack, entry.err = ack, err
	close(entry.done)
}

// sendEntry sends once. The server does not push a message back to its sender, so the acknowledgement takes its place,
// unless the id was used before with another body.
func (c *Client) sendEntry(entry *Sending) (MessageAck, error) {
	args := fields{"chat_id": entry.chatID, "client_message_id": entry.clientMessageID, "body": entry.body}
	reply, err := c.request(context.Background(), "send_message", args, requestKind{})
	if err != nil {
		return MessageAck{}, err
	}
	ack, err := decode[MessageAck](reply)
	if err != nil {
		return ack, newError("INVALID_MESSAGE", err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ack.BodyDiffers {
		c.expectLocked(entry.chatID, ack.Sequence)
		return ack, nil
	}
	sender := c.userID
	c.offerLocked(Message{ChatID: entry.chatID, MessageID: ack.MessageID, ClientMessageID: entry.clientMessageID,
		Sequence: ack.Sequence, SenderID: &sender, Body: entry.body, SentAt: time.Now().UTC().Format("2006-01-02T15:04:05.000Z")})
	return ack, nil
}
