package rollcall

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"
)

// offlineClient delivers into a list and has no connection.
func offlineClient() (*Client, *[]int64) {
	var delivered []int64
	client, err := New(Options{URL: "http://127.0.0.1:1", Token: "x"})
	if err != nil {
		panic(err)
	}
	client.options.OnMessage = func(m Message) { delivered = append(delivered, m.Sequence) }
	client.dispatching = true // the test calls the events itself
	return client, &delivered
}

func (c *Client) runEvents() {
	for _, event := range c.events {
		event()
	}
	c.events = nil
}

func expectSequences(t *testing.T, c *Client, delivered *[]int64, wanted ...int64) {
	t.Helper()
	c.runEvents()
	if fmt.Sprint(*delivered) != fmt.Sprint(wanted) {
		t.Fatalf("%v, not %v", *delivered, wanted)
	}
}

func numbered(sequence int64) Message { return Message{ChatID: "c", Sequence: sequence} }

func TestDuplicatesAreDeliveredOnceAndAGapHoldsMessages(t *testing.T) {
	client, delivered := offlineClient()
	for _, sequence := range []int64{1, 2, 2, 1, 5, 4} {
		client.offerLocked(numbered(sequence))
	}
	expectSequences(t, client, delivered, 1, 2)
	client.offerLocked(numbered(3))
	expectSequences(t, client, delivered, 1, 2, 3, 4, 5)
}

func TestADeletedMessageBehindAGapIsDeliveredWithoutItsBody(t *testing.T) {
	client, _ := offlineClient()
	var bodies []string
	client.options.OnMessage = func(m Message) { bodies = append(bodies, fmt.Sprint(m.Body, m.Deleted)) }
	for _, sequence := range []int64{1, 3} {
		client.offerLocked(Message{ChatID: "c", Sequence: sequence, Body: "text"})
	}
	client.onDeletedLocked("elsewhere", 3)
	client.onDeletedLocked("c", 1)
	client.onDeletedLocked("c", 3)
	client.offerLocked(Message{ChatID: "c", Sequence: 2, Body: "text"})
	client.runEvents()
	if fmt.Sprint(bodies) != "[textfalse textfalse true]" {
		t.Fatal(bodies)
	}
}

func TestAChatOpenedWithoutAStartBeginsAtTheLatestMessage(t *testing.T) {
	client, delivered := offlineClient()
	client.chats.log("c").open = true
	client.offerLocked(numbered(8))
	expectSequences(t, client, delivered)
	client.beginLocked("c", 8)
	client.offerLocked(numbered(9))
	expectSequences(t, client, delivered, 8, 9)
}

func TestHeldMessagesAreBounded(t *testing.T) {
	client, delivered := offlineClient()
	client.chats.log("c").last = 0
	for sequence := int64(2); sequence < heldMessagesMax+50; sequence++ {
		client.offerLocked(numbered(sequence))
	}
	client.offerLocked(numbered(1))
	client.runEvents()
	if len(*delivered) != heldMessagesMax+1 {
		t.Fatal(len(*delivered))
	}
}

func TestWhatAClosingConnectionMissedIsRemembered(t *testing.T) {
	client, _ := offlineClient()
	client.markMissedLocked(map[string]int64{"c": 7})
	if log := client.chats.logs["c"]; !log.missed || log.last != 7 {
		t.Fatal(*log)
	}
}

func TestBackoffDoublesToSixteenSecondsWithJitter(t *testing.T) {
	for attempt, seconds := range []int{1, 2, 4, 8, 16, 16, 16} {
		if delay := backoffDelay(attempt, 0.5); delay != time.Duration(seconds)*time.Second {
			t.Error(attempt, delay)
		}
	}
	if delay := backoffDelay(0, 0); delay != 800*time.Millisecond {
		t.Error(delay)
	}
	if delay := retryDelay(&Error{Code: "RATE_LIMITED", RetryAfter: 300 * time.Millisecond}, 5, 0.5); delay != 300*time.Millisecond {
		t.Error(delay)
	}
}

func TestPresenceIsOrderedByVersionAndUnknownAlwaysApplies(t *testing.T) {
	cache := presenceCache{known: map[string]*cachedPresence{}, subscribed: map[string]bool{}}
	steps := []struct {
		presence Presence
		shown    bool
	}{
		{Presence{UserID: "bob", Status: "online", Version: 5}, true},
		{Presence{UserID: "bob", Status: "offline", Version: 4}, false},
		{Presence{UserID: "bob", Status: "online", Version: 6}, false},
		{Presence{UserID: "bob", Status: "unknown"}, true},
		{Presence{UserID: "bob", Status: "online", Version: 3}, true},
	}
	for number, step := range steps {
		if cache.apply(step.presence) != step.shown {
			t.Error(number)
		}
	}
}

func TestThePresenceCacheIsBoundedAndKeepsSubscribedUsers(t *testing.T) {
	cache := presenceCache{known: map[string]*cachedPresence{}, subscribed: map[string]bool{"user-0": true}}
	for number := 0; number < presenceCacheMax+5; number++ {
		cache.apply(Presence{UserID: fmt.Sprintf("user-%d", number), Version: 1})
	}
	if cache.known["user-0"] == nil || cache.known["user-5"] != nil || cache.known["user-6"] == nil {
		t.Fatal("the wrong ones were dropped")
	}
}

func TestQueuesAreBounded(t *testing.T) {
	client, _ := offlineClient()
	for number := 0; number < outboxMax; number++ {
		if _, err := client.QueueMessage("c", "x", ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.QueueMessage("c", "x", ""); Code(err) != "QUEUE_FULL" {
		t.Fatal(err)
	}
	for number := 0; number < pendingRequestsMax; number++ {
		client.addRequestLocked("x", nil, requestKind{})
	}
	if _, _, err := client.addRequestLocked("x", nil, requestKind{}); Code(err) != "QUEUE_FULL" {
		t.Fatal(err)
	}
}

func TestALostConnectionFailsOrRepeatsRequests(t *testing.T) {
	client, _ := offlineClient()
	_, once, _ := client.addRequestLocked("call_end", nil, requestKind{})
	_, again, _ := client.addRequestLocked("open_chat", nil, requestKind{idempotent: true})
	once.sent, again.sent = true, true
	client.requests.connectionLost()
	if settled := <-once.done; Code(settled.err) != "DISCONNECTED" {
		t.Fatal(settled)
	}
	if again.sent || len(again.done) != 0 {
		t.Fatal("an idempotent request must wait for the next connection")
	}
}

func jwt(expiry time.Time) string {
	claims := fmt.Sprintf(`{"exp":%d}`, expiry.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
}

func TestATokenIsRefreshedAMinuteBeforeItsEndOrAtHalfOfAShortLife(t *testing.T) {
	for life, wanted := range map[time.Duration]time.Duration{600 * time.Second: 540 * time.Second, 20 * time.Second: 10 * time.Second} {
		source := tokenSource{token: jwt(time.Now().Add(life)), get: nil}
		if _, needed := source.refreshWait(0); needed {
			t.Error("there is no GetToken")
		}
		source.get = func(context.Context) (string, error) { return "", nil }
		wait, _ := source.refreshWait(0)
		if difference := wait - wanted; difference > time.Second || difference < -2*time.Second {
			t.Error(life, wait)
		}
	}
	if _, expires := tokenExpiry("nonsense"); expires {
		t.Error("nonsense never expires")
	}
}
