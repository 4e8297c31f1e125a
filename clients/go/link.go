package rollcall

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// One WebSocket at a time, which is replaced when it is lost:
//
//	DISCONNECTED ──Connect──► CONNECTING ──connection_established──► SYNCING ──restored──► READY
//	                              │ failed                              │ connection_closing │
//	BACKOFF ◄─────────────────────┴──────── lost ◄──────────────────── CLOSING ◄────────────┘
//	   └── the delay is over, or Connect ──► CONNECTING
//	any ── Close, or the server does not allow reconnecting ──► DISCONNECTED with Final
//
// The delays start at 1 s again after READY has lasted for a while, so that the client does not connect every second to a
// server that accepts connections and closes them. A refused token (401, 4001, token_expired) is replaced once per outage;
// if the fresh one is refused too, the client stops.
const (
	handshakeTimeout = 10 * time.Second // to connection_established
	closingTimeout   = 60 * time.Second // a draining server closes its connections one by one
	stableAfter      = 10 * time.Second
	outgoingMax      = 1024 // frames; beyond it the connection is dropped
	messageBytesMax  = 1 << 24

	closeTooLarge = 1009
	closeToken    = 4001
)

// connection is one WebSocket from its handshake to its end. All its goroutines end with ctx.
type connection struct {
	ctx      context.Context
	cancel   context.CancelFunc
	socket   *websocket.Conn
	outgoing chan []byte
	beatNow  chan struct{}
	turn     sync.Mutex // of those that wait after RATE_LIMITED

	// Guarded by the client's lock.
	dropReason      string
	closing         *closingMessage
	closingSince    time.Time
	readySince      time.Time
	unansweredSince time.Time
}

type closingMessage struct {
	Reason           string           `json:"reason"`
	ReconnectAllowed *bool            `json:"reconnect_allowed"`
	ReconnectAfterMS *float64         `json:"reconnect_after_ms"`
	SyncFromSequence map[string]int64 `json:"sync_from_sequence"`
}

// connectionEnd tells how a connection or an attempt ended.
type connectionEnd struct {
	reason       string
	code         int
	tokenRefused bool
	retryAfter   time.Duration
	connection   *connection
}

func (c *Client) startLocked() {
	ctx, cancel := context.WithCancel(context.Background())
	c.running, c.stop, c.stopped, c.stopError = true, cancel, make(chan struct{}), nil
	select {
	case <-c.hurry:
	default:
	}
	go c.run(ctx, c.stopped)
}

func (c *Client) run(ctx context.Context, stopped chan struct{}) {
	defer close(stopped)
	for {
		c.setState(StateChange{State: Connecting})
		end, err := c.attempt(ctx)
		if err == nil {
			err = c.finalError(end)
		}
		if err == nil && ctx.Err() == nil {
			c.backOff(ctx, end)
		}
		if ctx.Err() != nil {
			err = c.whyStopped()
		}
		if err != nil {
			c.finish(err)
			return
		}
	}
}

func (c *Client) whyStopped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopError
}

func (c *Client) setState(change StateChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setStateLocked(change)
}

// setStateLocked is where every change of state goes through.
func (c *Client) setStateLocked(change StateChange) {
	change.Previous = c.state
	c.state = change.State
	if c.options.OnState != nil {
		c.emitLocked(func() { c.options.OnState(change) })
	}
}

func (c *Client) finish(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	c.attempts, c.tokenReplaced = 0, false
	c.stop()
	c.failAllLocked(err)
	c.setStateLocked(StateChange{State: Disconnected, Final: true, Reason: Code(err), Err: err})
}

func (c *Client) failAllLocked(err error) {
	c.requests.failAll(err)
	c.failOutboxLocked(err)
	for _, waiter := range c.waiters {
		waiter <- err
	}
	c.waiters = nil
}

// attempt runs one connection. It returns an error only if GetToken has no more tokens for this user.
func (c *Client) attempt(ctx context.Context) (connectionEnd, error) {
	handshake, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	token, err := c.tokens.current(handshake)
	if Code(err) == "UNAUTHENTICATED" {
		return connectionEnd{}, err
	}
	if err != nil {
		c.mu.Lock()
		c.emitErrorLocked(err)
		c.mu.Unlock()
		return connectionEnd{reason: "no_token"}, nil
	}
	socket, response, err := websocket.Dial(handshake, c.endpoint, &websocket.DialOptions{
		HTTPClient:      c.dialer,
		HTTPHeader:      http.Header{"Authorization": {"Bearer " + token}},
		Subprotocols:    []string{"rollcall.v1"},
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return dialFailure(response, err), nil
	}
	return c.serve(ctx, socket), nil
}

func dialFailure(response *http.Response, err error) connectionEnd {
	end := connectionEnd{reason: err.Error()}
	if response != nil {
		end.tokenRefused = response.StatusCode == http.StatusUnauthorized
		if seconds, parseError := strconv.Atoi(response.Header.Get("Retry-After")); parseError == nil {
			end.retryAfter = time.Duration(seconds) * time.Second
		}
	}
	return end
}

// serve reads the connection until it ends.
func (c *Client) serve(ctx context.Context, socket *websocket.Conn) connectionEnd {
	socket.SetReadLimit(messageBytesMax)
	connectionContext, cancel := context.WithCancel(ctx)
	connection := &connection{ctx: connectionContext, cancel: cancel, socket: socket,
		outgoing: make(chan []byte, outgoingMax), beatNow: make(chan struct{}, 1)}
	c.mu.Lock()
	c.connection = connection
	c.mu.Unlock()
	go connection.write()
	go c.wakeReader(connectionContext)
	handshake := time.AfterFunc(handshakeTimeout, func() { c.drop(connection, "handshake_timeout") })
	code := c.read(connection, handshake)
	handshake.Stop()
	cancel()
	if ctx.Err() != nil {
		_ = socket.Close(websocket.StatusNormalClosure, "")
	} else {
		_ = socket.CloseNow()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connection = nil
	if code == closeTooLarge {
		c.requests.tooLarge()
	}
	c.requests.connectionLost()
	return connectionEnd{reason: connection.dropReason, code: code, connection: connection}
}

// wakeReader ends the wait of a reader for a callback that is itself waiting for the end.
func (c *Client) wakeReader(ctx context.Context) {
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eventTaken.Broadcast()
}

// drop ends a connection because it is dead.
func (c *Client) drop(connection *connection, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	connection.dropLocked(reason)
}

func (connection *connection) dropLocked(reason string) {
	if connection.dropReason == "" {
		connection.dropReason = reason
	}
	connection.cancel()
}

func (connection *connection) write() {
	for {
		select {
		case frame := <-connection.outgoing:
			if connection.socket.Write(connection.ctx, websocket.MessageText, frame) != nil {
				return // the reader reports it
			}
		case <-connection.ctx.Done():
			return
		}
	}
}

// read handles messages until the connection ends, and returns the close code.
func (c *Client) read(connection *connection, handshake *time.Timer) int {
	for {
		_, text, err := connection.socket.Read(connection.ctx)
		if err != nil {
			return closeCode(err)
		}
		var envelope struct {
			Type string
			ID   *string
		}
		c.mu.Lock()
		for len(c.events) >= eventsMax && connection.ctx.Err() == nil {
			c.eventTaken.Wait()
		}
		if json.Unmarshal(text, &envelope) != nil || envelope.Type == "" {
			c.emitErrorLocked(newError("INVALID_MESSAGE", "the server sent data that is not a message"))
		} else if envelope.Type == "connection_established" && c.state == Connecting {
			handshake.Stop()
			c.onEstablishedLocked(connection, text)
		} else {
			c.onMessageLocked(connection, envelope.Type, envelope.ID, text)
		}
		c.mu.Unlock()
	}
}

func closeCode(err error) int {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		return int(closed.Code)
	}
	return 0
}

// sendLocked queues a frame in order; it returns false if there is no connection.
func (c *Client) sendLocked(frame []byte) bool {
	if c.connection == nil {
		return false
	}
	select {
	case c.connection.outgoing <- frame:
		return true
	default:
		c.connection.dropLocked("send_queue_full")
		return false
	}
}

func (c *Client) onClosingLocked(connection *connection, message *closingMessage) {
	connection.closing = message
	connection.closingSince = time.Now()
	if c.state == Syncing || c.state == Ready {
		timer := time.AfterFunc(closingTimeout, func() { c.drop(connection, "closing_timeout") })
		go func() {
			<-connection.ctx.Done()
			timer.Stop()
		}()
		c.setStateLocked(StateChange{State: Closing, Reason: message.Reason})
	}
}

// finalError returns why the client must stop, or nil. It replaces the token where that may help.
func (c *Client) finalError(end connectionEnd) error {
	closing := closingMessage{}
	if end.connection != nil && end.connection.closing != nil {
		closing = *end.connection.closing
	}
	if end.tokenRefused || end.code == closeToken || closing.Reason == "token_expired" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tokenReplaced || !c.tokens.discard() {
			return newError("UNAUTHENTICATED", "the server refused the token")
		}
		c.tokenReplaced = true
		return nil
	}
	if closing.ReconnectAllowed != nil && !*closing.ReconnectAllowed {
		return newError("CLOSED", "the server closed the connection for good: "+closing.Reason)
	}
	return nil
}

func (c *Client) backOff(ctx context.Context, end connectionEnd) {
	c.mu.Lock()
	reason := end.reason
	if end.connection != nil {
		if !end.connection.readySince.IsZero() && time.Since(end.connection.readySince) > stableAfter {
			c.attempts = 0
		}
		if end.connection.closing != nil {
			reason = end.connection.closing.Reason
		}
	}
	delay := c.delayLocked(end)
	select {
	case <-c.hurry:
	default:
	}
	c.setStateLocked(StateChange{State: Backoff, Delay: delay, Reason: reason, CloseCode: end.code})
	c.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.hurry:
	case <-ctx.Done():
	}
}

// delayLocked: reconnect_after_ms includes the time until the server closed.
func (c *Client) delayLocked(end connectionEnd) time.Duration {
	if end.connection != nil && end.connection.closing != nil && end.connection.closing.ReconnectAfterMS != nil {
		asked := min(time.Duration(*end.connection.closing.ReconnectAfterMS*float64(time.Millisecond)), reconnectAfterMax)
		if left := asked - time.Since(end.connection.closingSince); left > 0 {
			return left
		}
		return 0
	}
	c.attempts++
	if end.tokenRefused && c.attempts == 1 {
		return 0 // with the fresh token at once
	}
	delay := backoffDelay(c.attempts-1, c.random.Float64())
	if asked := min(end.retryAfter, reconnectAfterMax); asked > delay {
		return asked
	}
	return delay
}
