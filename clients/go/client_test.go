package rollcall

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const soon = 30 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, server *testServer, user string, options Options) *Client {
	t.Helper()
	options.URL, options.Token = server.url, server.token(user)
	client, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Connect(testContext(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func must[T any](t *testing.T) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func take[T any](t *testing.T, from chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(soon):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestAMessageReachesTheOtherUserAndMovesTheReadMark(t *testing.T) {
	server, ctx := startServer(t), testContext(t)
	got := make(chan Message, 10)
	alice := connect(t, server, "alice", Options{})
	bob := connect(t, server, "bob", Options{OnMessage: func(m Message) { got <- m }})
	chat := must[Chat](t)(alice.DirectChat(ctx, "bob"))
	ack := must[MessageAck](t)(alice.SendMessage(ctx, chat.ChatID, "héllo"))
	message := take(t, got)
	if message.Body != "héllo" || message.Sequence != 1 || ack.Sequence != 1 || *message.SenderID != "alice" {
		t.Fatal(message, ack)
	}
	if chat := must[Chat](t)(bob.Chat(ctx, chat.ChatID)); chat.Unread != 1 {
		t.Fatal(chat)
	}
	if mark := must[int64](t)(bob.MarkRead(ctx, chat.ChatID, 1)); mark != 1 {
		t.Fatal(mark)
	}
	chats, cursor, err := bob.Chats(ctx, "", 10)
	if err != nil || len(chats) != 1 || chats[0].Unread != 0 || cursor != "" {
		t.Fatal(chats, cursor, err)
	}
}

func TestContactsSeeEachOtherComeAndGo(t *testing.T) {
	server, ctx := startServer(t), testContext(t)
	changes := make(chan Presence, 10)
	alice := connect(t, server, "alice", Options{OnPresence: func(p Presence) { changes <- p }})
	bob := connect(t, server, "bob", Options{})
	request := must[ContactRequest](t)(alice.RequestContact(ctx, "bob"))
	if err := bob.AcceptContact(ctx, request.ID); err != nil {
		t.Fatal(err)
	}
	if presence := take(t, changes); presence.UserID != "bob" || presence.Status != "online" {
		t.Fatal(presence)
	}
	bob.Close()
	if presence := take(t, changes); presence.Status != "offline" || presence.LastSeen == nil {
		t.Fatal(presence)
	}
	if presence, known := alice.Presence("bob"); !known || presence.Status != "offline" {
		t.Fatal(presence)
	}
}

func TestARefusedRequestHasTheCodeOfTheServer(t *testing.T) {
	server, ctx := startServer(t), testContext(t)
	alice := connect(t, server, "alice", Options{})
	if _, err := alice.OpenChat(ctx, "elsewhere", 0); Code(err) != "NOT_FOUND" {
		t.Fatal(err)
	}
	if _, err := alice.Chat(ctx, "elsewhere"); Code(err) != "NOT_FOUND" {
		t.Fatal(err)
	}
	if _, err := alice.Request(ctx, "shout", nil, false); Code(err) != "INVALID_MESSAGE" {
		t.Fatal(err)
	}
	large := map[string]any{"user_ids": []string{strings.Repeat("x", 70000)}}
	if _, err := alice.Request(ctx, "query_presence", large, true); Code(err) != "MESSAGE_TOO_LARGE" {
		t.Fatal(err)
	}
	if err := alice.Connect(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestACallbackMayCloseTheClient(t *testing.T) {
	server := startServer(t)
	closed := make(chan struct{})
	var client *Client
	client = connect(t, server, "alice", Options{OnPush: func(push Push) {
		if push.Type == "delivery" {
			client.Close()
			close(closed)
		}
	}})
	service := must[*httpAPI](t)(newHTTPAPI(server.url, nil))
	token := server.token("backend", "--scope", "deliver")
	if err := service.call(testContext(t), token, "POST", path("users", "alice", "deliver"), "bye", nil); err != nil {
		t.Fatal(err)
	}
	take(t, closed)
	if client.State() != Disconnected {
		t.Fatal(client.State())
	}
}

func TestATokenSourceThatRefusesStopsTheClient(t *testing.T) {
	client, err := New(Options{URL: "http://127.0.0.1:1", GetToken: func(context.Context) (string, error) {
		return "", &Error{Code: "UNAUTHENTICATED", Message: "signed out"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Connect(testContext(t)); Code(err) != "UNAUTHENTICATED" {
		t.Fatal(err)
	}
}

func TestConnectObeysItsContext(t *testing.T) {
	client := must[*Client](t)(New(Options{URL: "http://127.0.0.1:1", Token: "x"}))
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := client.Connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, options := range []Options{{URL: "http://x"}, {URL: "ftp://x", Token: "x"}, {URL: "x", Token: "x"}} {
		if _, err := New(options); err == nil {
			t.Error(options)
		}
	}
}

func TestTheServiceSeesPresenceUnfilteredAndAUserIsNotTheService(t *testing.T) {
	server, ctx := startServer(t), testContext(t)
	connect(t, server, "alice", Options{})
	service := must[*Service](t)(NewService(server.url, server.token("backend", "--scope", "service"), nil))
	presences := must[[]Presence](t)(service.Presence(ctx, "alice", "nobody"))
	if len(presences) != 2 || presences[0].Status != "online" || presences[1].Status != "offline" {
		t.Fatal(presences)
	}
	user := must[*Service](t)(NewService(server.url, server.token("alice"), nil))
	var failure *Error
	if _, err := user.Presence(ctx, "bob"); !errors.As(err, &failure) || failure.Status != 403 {
		t.Fatal(err)
	}
	if _, err := service.Deliver(ctx, Recipients{}, "", "x"); err == nil {
		t.Fatal("a delivery to nobody")
	}
}

func TestTheServiceDeliversAndMakesContacts(t *testing.T) {
	server, ctx := startServer(t), testContext(t)
	pushes := make(chan Push, 10)
	alice := connect(t, server, "alice", Options{OnPush: func(push Push) {
		if push.Type == "delivery" {
			pushes <- push
		}
	}})
	service := must[*Service](t)(NewService(server.url, server.token("backend", "--scope", "service"), nil))
	accepted := must[int](t)(service.Deliver(ctx, Recipients{Users: []string{"alice", "nobody"}}, "shipped", map[string]int{"id": 7}))
	var delivery struct {
		Event string
		Data  struct{ ID int }
	}
	if err := take(t, pushes).Decode(&delivery); err != nil || accepted != 1 || delivery.Event != "shipped" || delivery.Data.ID != 7 {
		t.Fatal(accepted, delivery, err)
	}
	expectFriends := func(wanted ...string) {
		t.Helper()
		friends, _, err := alice.Friends(ctx, FriendsQuery{})
		var names []string
		for _, friend := range friends {
			names = append(names, friend.UserID)
		}
		if err != nil || fmt.Sprint(names) != fmt.Sprint(wanted) {
			t.Fatal(names, err)
		}
	}
	if err := service.AddContact(ctx, "alice", "bob"); err != nil {
		t.Fatal(err)
	}
	expectFriends("bob")
	if err := service.SetContacts(ctx, "alice", []string{"carol", "dave"}); err != nil {
		t.Fatal(err)
	}
	if err := service.RemoveContact(ctx, "alice", "carol"); err != nil {
		t.Fatal(err)
	}
	lines := strings.NewReader(`{"contact":["alice","erin"]}` + "\n" + `{"contact":"wrong"}` + "\n")
	counts := must[ImportResult](t)(service.Import(ctx, lines))
	if counts.Contacts != 1 || len(counts.Errors) != 1 || counts.Errors[0].Line != 2 {
		t.Fatal(counts)
	}
	expectFriends("dave", "erin")
	online, next, err := service.Online(ctx, "", 10)
	if err != nil || fmt.Sprint(online) != "[alice]" || next != "" {
		t.Fatal(online, next, err)
	}
}

func TestTheServiceMakesChatsSendsAndDeletes(t *testing.T) {
	server, ctx := startServer(t), testContext(t)
	alice := connect(t, server, "alice", Options{})
	service := must[*Service](t)(NewService(server.url, server.token("backend", "--scope", "service"), nil))
	must[Chat](t)(service.CreateChat(ctx, "crew", "alice"))
	if err := service.AddMember(ctx, "crew", "bob"); err != nil {
		t.Fatal(err)
	}
	for _, sender := range []string{"bob", ""} {
		must[MessageAck](t)(service.SendMessage(ctx, "crew", sender, "of-"+sender, "hello"))
	}
	if err := service.DeleteMessage(ctx, "crew", 1); err != nil {
		t.Fatal(err)
	}
	page := must[MessagePage](t)(alice.FetchMessages(ctx, "crew", 0, 10))
	if len(page.Messages) != 2 || !page.Messages[0].Deleted || page.Messages[0].Body != "" || page.Messages[1].SenderID != nil {
		t.Fatal(page)
	}
	if err := service.RemoveMember(ctx, "crew", "bob"); err != nil {
		t.Fatal(err)
	}
	if chat := must[Chat](t)(alice.Chat(ctx, "crew")); fmt.Sprint(chat.Members) != "[alice]" {
		t.Fatal(chat)
	}
}

func TestTheExampleChats(t *testing.T) {
	server := startServer(t)
	example := t.TempDir() + "/chat"
	if output, err := exec.Command("go", "build", "-o", example, "./examples/chat").CombinedOutput(); err != nil {
		t.Fatal(string(output))
	}
	ann := startProgram(t, exec.Command(example, server.url, "ann", "ben"))
	ben := startProgram(t, exec.Command(example, server.url, "ben", "ann"))
	fmt.Fprintln(ann.input, "hello")
	ben.expectLine(t, "ann: hello")
	fmt.Fprintln(ben.input, "hi")
	ann.expectLine(t, "ben: hi")
}

type runningProgram struct {
	input  io.WriteCloser
	output *bufio.Scanner
}

// startProgram starts a program that ends with its input.
func startProgram(t *testing.T, command *exec.Cmd) runningProgram {
	t.Helper()
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output := must[io.ReadCloser](t)(command.StdoutPipe())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(2*soon, func() { _ = command.Process.Kill() })
	t.Cleanup(func() {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
		limit.Stop()
	})
	return runningProgram{input, bufio.NewScanner(output)}
}

func (p runningProgram) expectLine(t *testing.T, wanted string) {
	t.Helper()
	for p.output.Scan() {
		if p.output.Text() == wanted {
			return
		}
	}
	t.Fatalf("%q did not come", wanted)
}
