package rollcall

import (
	"context"
	"net/url"
	"strconv"
)

// HTTP sends any request of the HTTP API with the client's token: a JSON body (nil: none), and where to read the answer
// (nil: ignored).
func (c *Client) HTTP(ctx context.Context, method, target string, body, into any) error {
	token, err := c.tokens.current(ctx)
	if err != nil {
		return err
	}
	return c.api.call(ctx, token, method, target, body, into)
}

// FriendsQuery filters Friends; its zero value is the first page of all.
type FriendsQuery struct {
	Status string
	InCall bool
	After  string
	Limit  int
}

// Friends returns a page of the contacts with their presence, and whether there are more.
func (c *Client) Friends(ctx context.Context, query FriendsQuery) ([]Presence, bool, error) {
	values := url.Values{}
	setIf(values, "status", query.Status)
	setIf(values, "after", query.After)
	if query.InCall {
		values.Set("in_call", "true")
	}
	if query.Limit > 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	var page struct {
		Friends []Presence
		HasMore bool `json:"has_more"`
	}
	err := c.HTTP(ctx, "GET", path("friends")+"?"+values.Encode(), nil, &page)
	return page.Friends, page.HasMore, err
}

func setIf(values url.Values, name, value string) {
	if value != "" {
		values.Set(name, value)
	}
}

// ContactRequests returns the pending requests.
func (c *Client) ContactRequests(ctx context.Context) (incoming, outgoing []ContactRequest, err error) {
	var answer struct{ Incoming, Outgoing []ContactRequest }
	err = c.HTTP(ctx, "GET", path("contact-requests"), nil, &answer)
	return answer.Incoming, answer.Outgoing, err
}

// RequestContact returns the request, whose status is "pending", or "accepted" if that user had sent one too.
func (c *Client) RequestContact(ctx context.Context, user string) (request ContactRequest, err error) {
	err = c.HTTP(ctx, "POST", path("contact-requests"), fields{"to": user}, &request)
	return request, err
}

// AcceptContact accepts a request.
func (c *Client) AcceptContact(ctx context.Context, requestID string) error {
	return c.HTTP(ctx, "POST", path("contact-requests", requestID, "accept"), nil, nil)
}

// DeclineContact declines a request.
func (c *Client) DeclineContact(ctx context.Context, requestID string) error {
	return c.HTTP(ctx, "POST", path("contact-requests", requestID, "decline"), nil, nil)
}

// WithdrawContactRequest takes an own request back.
func (c *Client) WithdrawContactRequest(ctx context.Context, requestID string) error {
	return c.HTTP(ctx, "DELETE", path("contact-requests", requestID), nil, nil)
}

// RemoveContact ends a contact for both.
func (c *Client) RemoveContact(ctx context.Context, user string) error {
	return c.HTTP(ctx, "DELETE", path("contacts", user), nil, nil)
}

// Block blocks a user, which also ends the contact.
func (c *Client) Block(ctx context.Context, user string) error {
	return c.HTTP(ctx, "PUT", path("blocks", user), nil, nil)
}

// Unblock ends a block.
func (c *Client) Unblock(ctx context.Context, user string) error {
	return c.HTTP(ctx, "DELETE", path("blocks", user), nil, nil)
}

// CreateChat creates a group; with an empty chatID the server chooses one.
func (c *Client) CreateChat(ctx context.Context, chatID string, members ...string) (chat Chat, err error) {
	body := fields{"members": members}
	if chatID != "" {
		body["chat_id"] = chatID
	}
	err = c.HTTP(ctx, "POST", path("chats"), body, &chat)
	return chat, err
}

// DirectChat returns the one direct chat with a user.
func (c *Client) DirectChat(ctx context.Context, user string) (chat Chat, err error) {
	err = c.HTTP(ctx, "POST", path("chats"), fields{"direct_with": user}, &chat)
	return chat, err
}

// Chats returns a page of the user's chats by last activity, newest first, and the cursor of the next page ("": none).
func (c *Client) Chats(ctx context.Context, cursor string, limit int) ([]Chat, string, error) {
	values := url.Values{}
	setIf(values, "cursor", cursor)
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	var page struct {
		Chats      []Chat
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
	}
	err := c.HTTP(ctx, "GET", path("chats")+"?"+values.Encode(), nil, &page)
	if err != nil || !page.HasMore || page.NextCursor == nil {
		return page.Chats, "", err
	}
	return page.Chats, *page.NextCursor, nil
}

// Chat returns one chat.
func (c *Client) Chat(ctx context.Context, chatID string) (chat Chat, err error) {
	err = c.HTTP(ctx, "GET", path("chats", chatID), nil, &chat)
	return chat, err
}

// SetMembersCanAdd changes whether members who are no admins may add others.
func (c *Client) SetMembersCanAdd(ctx context.Context, chatID string, allowed bool) error {
	return c.HTTP(ctx, "PATCH", path("chats", chatID), fields{"members_can_add": allowed}, nil)
}

// AddMember adds a user to a group.
func (c *Client) AddMember(ctx context.Context, chatID, user string) error {
	return c.HTTP(ctx, "PUT", path("chats", chatID, "members", user), nil, nil)
}

// RemoveMember removes a user from a group or, with the own id, leaves it.
func (c *Client) RemoveMember(ctx context.Context, chatID, user string) error {
	return c.HTTP(ctx, "DELETE", path("chats", chatID, "members", user), nil, nil)
}

// AddAdmin makes a member an admin.
func (c *Client) AddAdmin(ctx context.Context, chatID, user string) error {
	return c.HTTP(ctx, "PUT", path("chats", chatID, "admins", user), nil, nil)
}

// RemoveAdmin makes an admin a member.
func (c *Client) RemoveAdmin(ctx context.Context, chatID, user string) error {
	return c.HTTP(ctx, "DELETE", path("chats", chatID, "admins", user), nil, nil)
}

// MarkRead moves the read mark, as Ack does, and returns the mark.
func (c *Client) MarkRead(ctx context.Context, chatID string, sequence int64) (int64, error) {
	var mark struct{ Sequence int64 }
	err := c.HTTP(ctx, "POST", path("chats", chatID, "read"), fields{"sequence": sequence}, &mark)
	return mark.Sequence, err
}

// HistoryBefore returns the page of messages before a sequence; OnMessage does not get them.
func (c *Client) HistoryBefore(ctx context.Context, chatID string, beforeSequence int64, limit int) (page MessagePage, err error) {
	values := url.Values{"before_sequence": {strconv.FormatInt(beforeSequence, 10)}}
	if limit > 0 {
		values.Set("limit", strconv.Itoa(limit))
	}
	err = c.HTTP(ctx, "GET", path("chats", chatID, "messages")+"?"+values.Encode(), nil, &page)
	return page, err
}

// Me returns the user's settings.
func (c *Client) Me(ctx context.Context) (settings map[string]any, err error) {
	err = c.HTTP(ctx, "GET", path("me"), nil, &settings)
	return settings, err
}

// UpdateMe changes settings such as presence_visibility, read_receipts and display_name.
func (c *Client) UpdateMe(ctx context.Context, changes map[string]any) (settings map[string]any, err error) {
	err = c.HTTP(ctx, "PATCH", path("me"), changes, &settings)
	return settings, err
}

// Calls returns the last calls, the latest first.
func (c *Client) Calls(ctx context.Context, limit int) ([]map[string]any, error) {
	var answer struct{ Calls []map[string]any }
	target := path("calls")
	if limit > 0 {
		target += "?limit=" + strconv.Itoa(limit)
	}
	err := c.HTTP(ctx, "GET", target, nil, &answer)
	return answer.Calls, err
}
