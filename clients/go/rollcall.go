// Package rollcall is the client of a Rollcall server: presence, chats and calls over one connection that reconnects by
// itself, and the service API for backends (Service).
//
//	client, err := rollcall.New(rollcall.Options{
//		URL:        "https://rollcall.example.org",
//		GetToken:   fetchToken,
//		OnPresence: func(p rollcall.Presence) { fmt.Println(p.UserID, p.Status) },
//	})
//	err = client.Connect(ctx)
//	_, err = client.SubscribePresence(ctx, "alice", "bob")
//	_, err = client.SendMessage(ctx, "team", "good morning")
//
// The application subscribes to users, opens chats and sends messages once. The client restores and repeats them after
// lost connections (link.go has the states), until Close. All methods may be called from any goroutine. Callbacks are
// called one at a time, in the order of the events; they may call the client.
package rollcall

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// eventsMax bounds the events that wait for a callback. Beyond it the client stops reading, so that the server sees a
// slow consumer.
const eventsMax = 10000

// Options of a client. URL and one of Token and GetToken are required.
type Options struct {
	// URL is http, https, ws or wss; the path defaults to /v1/ws.
	URL string
	// Token is the first token.
	Token string
	// GetToken returns a fresh token. If it returns an *Error with the code UNAUTHENTICATED, the client stops; any
	// other error is retried.
	GetToken func(ctx context.Context) (string, error)
	// DeviceID stays the same after reconnects; random if empty.
	DeviceID string
	TLS      *tls.Config

	OnState    func(StateChange)
	OnPresence func(Presence)
	OnMessage  func(Message)
	OnChat     func(ChatSnapshot)
	OnTyping   func(Typing)
	// OnError gets errors that no call returns. They are not fatal: OnState reports the end.
	OnError func(error)
	// OnPush gets every other push of the server.
	OnPush func(Push)
}

// Client is the connection of one user.
type Client struct {
	options  Options
	endpoint string
	api      *httpAPI
	dialer   *http.Client
	tokens   *tokenSource

	mu           sync.Mutex
	state        State
	userID       string
	connectionID string
	active       *bool
	running      bool
	stop         context.CancelFunc
	stopped      chan struct{}
	stopError    *Error
	hurry        chan struct{}
	connection   *connection
	waiters      []chan error
	requests     requests
	outbox       outbox
	chats        chatLogs
	presences    presenceCache
	events       []func()
	dispatching  bool
	eventTaken   *sync.Cond
	random       *rand.Rand

	// Of the link, see link.go.
	attempts      int
	tokenReplaced bool
}

// New makes a client; Connect connects it.
func New(options Options) (*Client, error) {
	if options.Token == "" && options.GetToken == nil {
		return nil, errors.New("rollcall: Token or GetToken is needed")
	}
	if options.DeviceID == "" {
		options.DeviceID = uniqueID()
	}
	endpoint, err := endpointURL(options.URL, options.DeviceID)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = options.TLS
	c := &Client{
		options:  options,
		endpoint: endpoint,
		dialer:   &http.Client{Transport: transport},
		tokens:   &tokenSource{token: options.Token, get: options.GetToken},
		state:    Disconnected,
		hurry:    make(chan struct{}, 1),
		random:   rand.New(rand.NewSource(time.Now().UnixNano())),
	}
	c.api, err = newHTTPAPI(options.URL, options.TLS)
	c.eventTaken = sync.NewCond(&c.mu)
	c.requests.pending = map[string]*pendingRequest{}
	c.outbox.queues = map[string]*sendQueue{}
	c.chats.logs = map[string]*chatLog{}
	c.presences.known = map[string]*cachedPresence{}
	c.presences.subscribed = map[string]bool{}
	return c, err
}

// State is the present state.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// UserID is the user of the token, as the server reports it; empty before the first connection.
func (c *Client) UserID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.userID
}

// ConnectionID names the present connection, for reports of problems.
func (c *Client) ConnectionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connectionID
}

// DeviceID is the device's id, which stays the same after reconnects.
func (c *Client) DeviceID() string { return c.options.DeviceID }

// Connect waits for the next READY. During a back-off it reconnects at once. If ctx ends first, the client goes on
// connecting.
func (c *Client) Connect(ctx context.Context) error {
	c.mu.Lock()
	if c.state == Ready {
		c.mu.Unlock()
		return nil
	}
	waiter := make(chan error, 1)
	c.waiters = append(c.waiters, waiter)
	if !c.running {
		c.startLocked()
	}
	select {
	case c.hurry <- struct{}{}:
	default:
	}
	c.mu.Unlock()
	select {
	case err := <-waiter:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close disconnects. Pending requests and messages fail with CLOSED; Connect may follow.
func (c *Client) Close() {
	c.mu.Lock()
	closed := newError("CLOSED", "the client was closed")
	if !c.running {
		c.failAllLocked(closed)
		c.mu.Unlock()
		return
	}
	c.stopError = closed
	c.stop()
	stopped := c.stopped
	c.mu.Unlock()
	<-stopped
}

// SetActive says whether the user is active on this device; it is sent at once. A client that never calls it says
// nothing about the user.
func (c *Client) SetActive(active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active != nil && *c.active == active {
		return
	}
	c.active = &active
	if c.connection != nil {
		select {
		case c.connection.beatNow <- struct{}{}:
		default:
		}
	}
}

// RefreshToken sends a new token over the open connection; with an empty one, GetToken returns it.
func (c *Client) RefreshToken(ctx context.Context, token string) error {
	if token == "" {
		fresh, err := c.tokens.fetch(ctx)
		if err != nil {
			return err
		}
		token = fresh
	}
	_, err := c.request(ctx, "refresh_token", fields{"token": token}, requestKind{idempotent: true})
	if err == nil {
		c.tokens.replace(token)
	}
	return err
}

// Request sends any command of the protocol and returns its reply. An idempotent one may be sent again after a lost
// connection.
func (c *Client) Request(ctx context.Context, command string, args map[string]any, idempotent bool) (json.RawMessage, error) {
	return c.request(ctx, command, args, requestKind{idempotent: idempotent})
}

// emitLocked queues an event for the callbacks, which are called without the lock.
func (c *Client) emitLocked(event func()) {
	c.events = append(c.events, event)
	if !c.dispatching {
		c.dispatching = true
		go c.dispatch()
	}
}

func (c *Client) dispatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.events) > 0 {
		event := c.events[0]
		c.events = c.events[1:]
		c.mu.Unlock()
		event()
		c.mu.Lock()
		c.eventTaken.Broadcast()
	}
	c.events = nil
	c.dispatching = false
}

func (c *Client) emitErrorLocked(err error) {
	if c.options.OnError != nil {
		c.emitLocked(func() { c.options.OnError(err) })
	}
}

// endpointURL accepts http or ws, with or without a path.
func endpointURL(text, deviceID string) (string, error) {
	address, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("rollcall: %w", err)
	}
	address.Scheme = strings.Replace(address.Scheme, "http", "ws", 1)
	if address.Scheme != "ws" && address.Scheme != "wss" || address.Host == "" {
		return "", fmt.Errorf("rollcall: not a WebSocket address: %q", text)
	}
	if address.Path == "" || address.Path == "/" {
		address.Path = "/v1/ws"
	}
	query := address.Query()
	query.Set("device_id", deviceID)
	address.RawQuery = query.Encode()
	return address.String(), nil
}
