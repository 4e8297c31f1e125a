package rollcall

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// Service is the service API, for an application's backend. It acts for the application, without privacy or consent, so
// every call names whom it acts for. Any number of goroutines may share one.
type Service struct {
	api *httpAPI
	key string
}

// NewService takes an API key (rk_…, from `rollcall key create`) or a token with the scope `service`.
func NewService(address, key string, tlsConfig *tls.Config) (*Service, error) {
	api, err := newHTTPAPI(address, tlsConfig)
	return &Service{api, key}, err
}

// Recipients of a delivery: exactly one field is set.
type Recipients struct {
	Users    []string `json:"users,omitempty"`
	Chat     string   `json:"chat,omitempty"`
	Everyone bool     `json:"everyone,omitempty"`
}

// Deliver sends any JSON, under an event's name if it is not empty, and returns how many users with at least one device
// there are.
func (s *Service) Deliver(ctx context.Context, to Recipients, event string, data any) (int, error) {
	named := 0
	for _, given := range []bool{len(to.Users) > 0, to.Chat != "", to.Everyone} {
		if given {
			named++
		}
	}
	if named != 1 {
		return 0, errors.New("rollcall: name exactly one of Users, Chat and Everyone")
	}
	body := fields{"to": to, "data": data}
	if event != "" {
		body["event"] = event
	}
	var answer struct{ Accepted int }
	err := s.call(ctx, "POST", path("service", "deliver"), body, &answer)
	return answer.Accepted, err
}

// AddContact makes two users contacts.
func (s *Service) AddContact(ctx context.Context, user, other string) error {
	return s.call(ctx, "PUT", path("service", "contacts", user, other), nil, nil)
}

// RemoveContact ends a contact.
func (s *Service) RemoveContact(ctx context.Context, user, other string) error {
	return s.call(ctx, "DELETE", path("service", "contacts", user, other), nil, nil)
}

// SetContacts makes this the whole list of a user's contacts.
func (s *Service) SetContacts(ctx context.Context, user string, contacts []string) error {
	if contacts == nil {
		contacts = []string{}
	}
	return s.call(ctx, "PUT", path("service", "users", user, "contacts"), fields{"contacts": contacts}, nil)
}

// ImportResult counts what an import found, with its first errors.
type ImportResult struct {
	Contacts, Blocks, Users, Chats int
	Errors                         []struct {
		Line    int
		Message string
	}
}

// Import streams lines of JSON: {"contact":["a","b"]}, {"block":[…]}, {"user":{…}}, {"chat":{…}}. Importing the same
// lines again changes nothing, so an import that broke off may start again.
func (s *Service) Import(ctx context.Context, lines io.Reader) (counts ImportResult, err error) {
	err = s.api.exchange(ctx, s.key, "POST", path("service", "import"), "application/x-ndjson", lines, &counts)
	return counts, err
}

// CreateChat creates a group; with an empty chatID the server chooses one.
func (s *Service) CreateChat(ctx context.Context, chatID string, members ...string) (chat Chat, err error) {
	body := fields{"members": members}
	if chatID != "" {
		body["chat_id"] = chatID
	}
	err = s.call(ctx, "POST", path("service", "chats"), body, &chat)
	return chat, err
}

// AddMember adds a user to a chat.
func (s *Service) AddMember(ctx context.Context, chatID, user string) error {
	return s.call(ctx, "PUT", path("service", "chats", chatID, "members", user), nil, nil)
}

// RemoveMember removes a user from a chat.
func (s *Service) RemoveMember(ctx context.Context, chatID, user string) error {
	return s.call(ctx, "DELETE", path("service", "chats", chatID, "members", user), nil, nil)
}

// SendMessage sends as a user or, with an empty senderID, as the system. The same clientMessageID is stored once.
func (s *Service) SendMessage(ctx context.Context, chatID, senderID, clientMessageID, body string) (ack MessageAck, err error) {
	message := fields{"client_message_id": clientMessageID, "body": body}
	if senderID != "" {
		message["sender_id"] = senderID
	}
	err = s.call(ctx, "POST", path("service", "chats", chatID, "messages"), message, &ack)
	return ack, err
}

// DeleteMessage leaves a tombstone: the sequence stays, the body goes.
func (s *Service) DeleteMessage(ctx context.Context, chatID string, sequence int64) error {
	return s.call(ctx, "DELETE", path("service", "chats", chatID, "messages", strconv.FormatInt(sequence, 10)), nil, nil)
}

// Presence is unfiltered.
func (s *Service) Presence(ctx context.Context, users ...string) ([]Presence, error) {
	var answer struct{ Presences []Presence }
	query := url.Values{"users": {strings.Join(users, ",")}}
	err := s.call(ctx, "GET", path("service", "presence")+"?"+query.Encode(), nil, &answer)
	return answer.Presences, err
}

// Online returns a page of the users who are online, and where the next begins ("": nowhere).
func (s *Service) Online(ctx context.Context, after string, limit int) ([]string, string, error) {
	values := url.Values{}
	setIf(values, "after", after)
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	var page struct {
		Users []string
		Next  *string
	}
	err := s.call(ctx, "GET", path("service", "online")+"?"+values.Encode(), nil, &page)
	if err != nil || page.Next == nil {
		return page.Users, "", err
	}
	return page.Users, *page.Next, nil
}

// ExportUser returns everything that is stored of a user.
func (s *Service) ExportUser(ctx context.Context, user string) (all json.RawMessage, err error) {
	err = s.call(ctx, "GET", path("service", "users", user, "export"), nil, &all)
	return all, err
}

// EraseUser returns true when the user is erased. False: it takes longer and goes on; ask again.
func (s *Service) EraseUser(ctx context.Context, user string) (bool, error) {
	var progress json.RawMessage
	err := s.call(ctx, "DELETE", path("service", "users", user), nil, &progress)
	return err == nil && progress == nil, err
}

func (s *Service) call(ctx context.Context, method, target string, body, into any) error {
	return s.api.call(ctx, s.key, method, target, body, into)
}
