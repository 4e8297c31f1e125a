package rollcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	// pendingRequestsMax bounds requests that wait or are sent. The server allows as many in flight. Beyond it: QUEUE_FULL.
	pendingRequestsMax = 100
	requestTimeout     = 10 * time.Second
)

type fields = map[string]any

// requestKind: an idempotent request is sent again after a lost connection; an early one restores the present connection,
// so it is sent before READY and fails with that connection.
type requestKind struct{ idempotent, early bool }

type result struct {
	reply json.RawMessage
	err   error
}

type pendingRequest struct {
	frame []byte
	kind  requestKind
	sent  bool
	done  chan result
}

// requests are matched with their replies by id. Every request is settled exactly once: by the reply, by the server's
// error, or with one of the client's own codes. Without a connection a request waits for the next one within its time limit.
type requests struct {
	pending map[string]*pendingRequest
	lastID  int64
}

func (c *Client) request(ctx context.Context, command string, args fields, kind requestKind) (json.RawMessage, error) {
	c.mu.Lock()
	id, entry, err := c.addRequestLocked(command, args, kind)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer func() {
		c.mu.Lock()
		delete(c.requests.pending, id)
		c.mu.Unlock()
	}()
	timeout := time.NewTimer(requestTimeout)
	defer timeout.Stop()
	select {
	case settled := <-entry.done:
		return settled.reply, settled.err
	case <-timeout.C:
		return nil, newError("TIMEOUT", fmt.Sprintf("no reply to %s within %v", command, requestTimeout))
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, newError("TIMEOUT", "no reply to "+command+" before the deadline")
		}
		return nil, ctx.Err()
	}
}

func (c *Client) addRequestLocked(command string, args fields, kind requestKind) (string, *pendingRequest, error) {
	if len(c.requests.pending) >= pendingRequestsMax {
		return "", nil, newError("QUEUE_FULL", fmt.Sprintf("%d requests are waiting", pendingRequestsMax))
	}
	if kind.early && !c.isOpenLocked(true) {
		return "", nil, newError("DISCONNECTED", "there is no connection")
	}
	c.requests.lastID++
	id := strconv.FormatInt(c.requests.lastID, 10)
	frame := fields{"type": command, "id": id}
	for name, value := range args {
		frame[name] = value
	}
	text, err := json.Marshal(frame)
	if err != nil {
		return "", nil, newError("INVALID_MESSAGE", err.Error())
	}
	entry := &pendingRequest{frame: text, kind: kind, done: make(chan result, 1)}
	c.requests.pending[id] = entry
	c.sendRequestLocked(entry)
	return id, entry, nil
}

func (c *Client) sendRequestLocked(entry *pendingRequest) {
	if c.isOpenLocked(entry.kind.early) {
		entry.sent = c.sendLocked(entry.frame)
	}
}

// flushRequestsLocked sends the requests that waited for a connection.
func (c *Client) flushRequestsLocked() {
	for _, entry := range c.requests.pending {
		if !entry.sent {
			c.sendRequestLocked(entry)
		}
	}
}

// settle ends the request that a message answers; it returns false if there is none.
func (r *requests) settle(id string, message result) bool {
	entry := r.pending[id]
	if entry == nil {
		return false
	}
	delete(r.pending, id)
	entry.done <- message
	return true
}

// connectionLost repeats idempotent requests later; others fail, because the client cannot know whether they took effect.
func (r *requests) connectionLost() {
	for id, entry := range r.pending {
		if entry.kind.idempotent && !entry.kind.early {
			entry.sent = false
		} else if entry.sent {
			r.settle(id, result{err: newError("DISCONNECTED", "the connection was lost before the reply")})
		}
	}
}

// tooLarge fails the request for which the server closed the connection: the largest, as it accepted all others.
func (r *requests) tooLarge() {
	largest := ""
	for id, entry := range r.pending {
		if entry.sent && (largest == "" || len(entry.frame) > len(r.pending[largest].frame)) {
			largest = id
		}
	}
	if largest != "" {
		r.settle(largest, result{err: newError("MESSAGE_TOO_LARGE", "larger than the server accepts")})
	}
}

func (r *requests) failAll(err error) {
	for id := range r.pending {
		r.settle(id, result{err: err})
	}
}
