// Command scenario lets the scenarios use the Go client; clients/scenarios/README.md describes the lines.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	rollcall "rollcall.example.org/go"
)

type arguments struct {
	URL             string          `json:"url"`
	TokenFile       string          `json:"token_file"`
	DeviceID        string          `json:"device_id"`
	ChatID          string          `json:"chat_id"`
	UserID          string          `json:"user_id"`
	UserIDs         []string        `json:"user_ids"`
	AfterSequence   *int64          `json:"after_sequence"`
	BeforeSequence  int64           `json:"before_sequence"`
	Sequence        int64           `json:"sequence"`
	Limit           int             `json:"limit"`
	Body            string          `json:"body"`
	ClientMessageID string          `json:"client_message_id"`
	Typing          bool            `json:"typing"`
	To              string          `json:"to"`
	CallID          string          `json:"call_id"`
	RequestID       string          `json:"request_id"`
	Members         []string        `json:"members"`
	Data            json.RawMessage `json:"data"`
	Name            string          `json:"name"`
}

type command struct {
	ID     int       `json:"id"`
	Client string    `json:"client"`
	Do     string    `json:"do"`
	Args   arguments `json:"args"`
}

type object = map[string]any

var (
	output  sync.Mutex
	clients = map[string]*rollcall.Client{}
)

func emit(line object) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func open(name string, args arguments) error {
	event := func(kind string, data any) { emit(object{"client": name, "event": kind, "data": data}) }
	client, err := rollcall.New(rollcall.Options{
		URL:      args.URL,
		DeviceID: args.DeviceID,
		GetToken: func(context.Context) (string, error) {
			token, err := os.ReadFile(args.TokenFile)
			return string(token), err
		},
		OnState: func(change rollcall.StateChange) {
			event("state", object{"state": change.State, "final": change.Final, "reason": change.Reason})
		},
		OnPresence: func(presence rollcall.Presence) { event("presence", presence) },
		OnMessage:  func(message rollcall.Message) { event("message", message) },
		OnTyping:   func(typing rollcall.Typing) { event("typing", typing) },
		OnPush:     func(push rollcall.Push) { event(push.Type, push.Raw) },
	})
	if err != nil {
		return err
	}
	clients[name] = client
	go func() { _ = client.Connect(context.Background()) }() // OnState tells
	return nil
}

type operation func(ctx context.Context, c *rollcall.Client, a arguments) (any, error)

func only(err error) (any, error) { return nil, err }

var operations = map[string]operation{
	"close": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		c.Close()
		return nil, nil
	},
	"subscribe_presence": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.SubscribePresence(ctx, a.UserIDs...)
	},
	"open_chat": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		after := rollcall.Latest
		if a.AfterSequence != nil {
			after = *a.AfterSequence
		}
		return c.OpenChat(ctx, a.ChatID, after)
	},
	"close_chat": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.CloseChat(ctx, a.ChatID))
	},
	"typing": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.Typing(a.ChatID, a.Typing), nil
	},
	"ack": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.Ack(a.ChatID, a.Sequence), nil
	},
	"request_call": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		callID, err := c.RequestCall(ctx, a.To, "")
		return object{"call_id": callID}, err
	},
	"accept_call": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.AcceptCall(ctx, a.CallID))
	},
	"reject_call": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.RejectCall(ctx, a.CallID))
	},
	"end_call": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.EndCall(ctx, a.CallID))
	},
	"signal": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.Signal(a.CallID, a.Data), nil
	},
	"send_event": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		data, err := c.SendEvent(ctx, a.Name, a.Data)
		return object{"data": data}, err
	},
	"request_contact": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.RequestContact(ctx, a.UserID)
	},
	"contact_requests": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		incoming, outgoing, err := c.ContactRequests(ctx)
		return object{"incoming": incoming, "outgoing": outgoing}, err
	},
	"accept_contact": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.AcceptContact(ctx, a.RequestID))
	},
	"remove_contact": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.RemoveContact(ctx, a.UserID))
	},
	"friends": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		friends, _, err := c.Friends(ctx, rollcall.FriendsQuery{})
		return object{"friends": friends}, err
	},
	"block": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.Block(ctx, a.UserID))
	},
	"create_chat": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.CreateChat(ctx, a.ChatID, a.Members...)
	},
	"direct_chat": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.DirectChat(ctx, a.UserID)
	},
	"chat": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.Chat(ctx, a.ChatID)
	},
	"history": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return c.HistoryBefore(ctx, a.ChatID, a.BeforeSequence, a.Limit)
	},
	"mark_read": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		mark, err := c.MarkRead(ctx, a.ChatID, a.Sequence)
		return object{"sequence": mark}, err
	},
	"remove_member": func(ctx context.Context, c *rollcall.Client, a arguments) (any, error) {
		return only(c.RemoveMember(ctx, a.ChatID, a.UserID))
	},
}

func answer(id int, result any, err error) {
	if err == nil {
		emit(object{"id": id, "result": result})
		return
	}
	code := "BUG"
	var failure *rollcall.Error
	if errors.As(err, &failure) {
		code = failure.Code
	}
	emit(object{"id": id, "error": object{"code": code, "message": err.Error()}})
}

// perform queues messages in the order of the commands; all else may take its time.
func perform(each command) {
	switch each.Do {
	case "open":
		answer(each.ID, nil, open(each.Client, each.Args))
	case "send_message":
		sending, err := clients[each.Client].QueueMessage(each.Args.ChatID, each.Args.Body, each.Args.ClientMessageID)
		if err != nil {
			answer(each.ID, nil, err)
			return
		}
		go func() {
			ack, err := sending.Wait(context.Background())
			answer(each.ID, ack, err)
		}()
	default:
		client, work := clients[each.Client], operations[each.Do]
		go func() {
			result, err := work(context.Background(), client, each.Args)
			answer(each.ID, result, err)
		}()
	}
}

func main() {
	emit(object{"hello": object{"name": "Go"}})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var each command
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			panic(err)
		}
		perform(each)
	}
}
