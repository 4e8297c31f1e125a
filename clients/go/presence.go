package rollcall

import (
	"context"
	"encoding/json"
)

// presenceCacheMax bounds the users cached. Beyond it, the one updated longest ago that is not subscribed to is dropped.
const presenceCacheMax = 1000

type cachedPresence struct {
	Presence
	updated int64
}

// presenceCache has the last known presence of users, and the subscriptions of the application. Snapshots and changes may
// overtake one another; versions order them. Version 0 means that this client may no longer see the user; it always
// applies.
type presenceCache struct {
	known      map[string]*cachedPresence
	subscribed map[string]bool
	updates    int64
}

// apply returns false if the presence is outdated or changes nothing.
func (cache *presenceCache) apply(presence Presence) bool {
	known := cache.known[presence.UserID]
	if known != nil && presence.Version > 0 && presence.Version < known.Version {
		return false
	}
	cache.updates++
	cache.known[presence.UserID] = &cachedPresence{presence, cache.updates}
	if len(cache.known) > presenceCacheMax {
		cache.dropOldest()
	}
	return known == nil || !looksSame(known.Presence, presence)
}

func (cache *presenceCache) dropOldest() {
	oldest := ""
	for user, each := range cache.known {
		if !cache.subscribed[user] && (oldest == "" || each.updated < cache.known[oldest].updated) {
			oldest = user
		}
	}
	delete(cache.known, oldest)
}

func looksSame(a, b Presence) bool {
	sameSeen := a.LastSeen == b.LastSeen || a.LastSeen != nil && b.LastSeen != nil && *a.LastSeen == *b.LastSeen
	return sameSeen && a.Status == b.Status && a.InCall == b.InCall && a.Stale == b.Stale && a.Reason == b.Reason
}

// Presence returns the last known presence of a user, and whether there is one.
func (c *Client) Presence(userID string) (Presence, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.presences.known[userID]
	if known == nil {
		return Presence{}, false
	}
	return known.Presence, true
}

// SubscribePresence subscribes until UnsubscribePresence, also after reconnects. It returns their presences.
func (c *Client) SubscribePresence(ctx context.Context, userIDs ...string) ([]Presence, error) {
	var added []string
	c.mu.Lock()
	for _, user := range userIDs {
		if !c.presences.subscribed[user] {
			c.presences.subscribed[user] = true
			added = append(added, user)
		}
	}
	c.mu.Unlock()
	presences, err := c.requestPresences(ctx, "subscribe_presence", userIDs, requestKind{idempotent: true})
	if err != nil && !isRetryable(err) {
		c.forget(added)
	}
	return presences, err
}

// UnsubscribePresence ends subscriptions.
func (c *Client) UnsubscribePresence(ctx context.Context, userIDs ...string) error {
	c.forget(userIDs)
	_, err := c.request(ctx, "unsubscribe_presence", fields{"user_ids": userIDs}, requestKind{idempotent: true})
	return err
}

// QueryPresence returns presences without a subscription.
func (c *Client) QueryPresence(ctx context.Context, userIDs ...string) ([]Presence, error) {
	return c.requestPresences(ctx, "query_presence", userIDs, requestKind{idempotent: true})
}

func (c *Client) forget(userIDs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range userIDs {
		delete(c.presences.subscribed, user)
	}
}

func (c *Client) requestPresences(ctx context.Context, command string, userIDs []string, kind requestKind) ([]Presence, error) {
	reply, err := c.request(ctx, command, fields{"user_ids": userIDs}, kind)
	if err != nil {
		return nil, err
	}
	snapshot, err := decode[struct{ Presences []Presence }](reply)
	return snapshot.Presences, err
}

func decode[T any](raw json.RawMessage) (value T, err error) {
	err = json.Unmarshal(raw, &value)
	return value, err
}
