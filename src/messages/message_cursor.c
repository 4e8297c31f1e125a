#include "messages/message_cursor.h"

#include "base/container.h"

#include <stdlib.h>

struct cursor {
    struct table_node node;
    struct message_plane *plane;
    struct slice chat;
    struct slice user;
    struct slice device;
    uint64_t sent;
    uint64_t wanted;
    size_t key_len;
    char key[]; /* the three ids, each after its length */
};

static struct slice cursor_key(const struct cursor *cursor)
{
    return (struct slice){cursor->key, cursor->key_len};
}

static bool cursor_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(cursor_key(CONTAINER_OF(node, struct cursor, node)), key);
}

bool message_cursor_init(struct message_plane *plane, uint64_t seed)
{
    return table_init(&plane->cursors, seed, cursor_matches);
}

static void free_cursor(struct table_node *node, void *arg)
{
    struct message_plane *plane = arg;
    table_remove(&plane->cursors, node);
    free(CONTAINER_OF(node, struct cursor, node));
}

void message_cursor_free(struct message_plane *plane)
{
    table_each(&plane->cursors, free_cursor, plane);
    table_free(&plane->cursors);
}

void message_cursor_announce(const struct message_plane *plane, struct slice chat,
                             struct slice user, const struct ledger_cursor_outcome *outcome)
{
    if (outcome->status == LEDGER_OK && outcome->is_shown && plane->on_read)
        plane->on_read(plane->on_read_arg, chat, user, outcome);
}

static void store_cursor(struct cursor *cursor);

static void on_cursor_stored(void *arg, const struct ledger_cursor_outcome *outcome)
{
    struct cursor *cursor = arg;
    struct message_plane *plane = cursor->plane;
    message_cursor_announce(plane, cursor->chat, cursor->user, outcome);
    if (outcome->status == LEDGER_OK && cursor->wanted > cursor->sent && !plane->stopped)
        store_cursor(cursor);
    else
        free_cursor(&cursor->node, plane);
}

static void store_cursor(struct cursor *cursor)
{
    cursor->sent = cursor->wanted;
    ledger_cursor_put(cursor->plane->ledger, cursor->chat, cursor->user, cursor->device,
                      cursor->sent, on_cursor_stored, cursor);
}

/* Appends an id, after its length, to the key. Returns the copy. */
static struct slice append_cursor_id(struct cursor *cursor, struct slice id)
{
    char *at = cursor->key + cursor->key_len;
    *at = (char)id.len;
    memcpy(at + 1, id.data, id.len);
    cursor->key_len += 1 + id.len;
    return (struct slice){at + 1, id.len};
}

void message_cursor_advance(struct message_plane *plane, struct slice chat, struct slice user,
                            struct slice device, uint64_t sequence)
{
    if (plane->stopped)
        return;
    struct cursor *made = calloc(1, sizeof(*made) + 3 + chat.len + user.len + device.len);
    if (!made)
        return;
    made->plane = plane;
    made->chat = append_cursor_id(made, chat);
    made->user = append_cursor_id(made, user);
    made->device = append_cursor_id(made, device);
    struct table_node *node = table_find(&plane->cursors, cursor_key(made));
    if (node) {
        struct cursor *known = CONTAINER_OF(node, struct cursor, node);
        known->wanted = sequence > known->wanted ? sequence : known->wanted;
    }
    if (node || plane->cursors.size >= MESSAGE_CURSORS_MAX) {
        free(made);
        return;
    }
    made->wanted = sequence;
    table_insert(&plane->cursors, &made->node, cursor_key(made));
    store_cursor(made);
}
