#include "ledger/dynamodb/dynamodb_turns.h"

#include "base/container.h"

#include <stdlib.h>

/* One request is under way; the others wait. */
struct turns_line {
    struct table_node node;
    struct ledger_request *first;
    struct ledger_request **last_next;
    struct slice key;
    char key_bytes[];
};

static bool is_line_of(const struct table_node *node, struct slice key)
{
    return slice_equal(CONTAINER_OF(node, struct turns_line, node)->key, key);
}

bool dynamodb_turns_init(struct dynamodb_turns *turns, uint64_t seed)
{
    return table_init(&turns->lines, seed, is_line_of);
}

void dynamodb_turns_free(struct dynamodb_turns *turns)
{
    table_free(&turns->lines);
}

/* Returns SLICE_NONE for a request that waits for no other. An id is not empty, so none is the key of the revocations. */
static struct slice get_line_key(const struct ledger_request *request)
{
    switch (request->operation) {
    case LEDGER_CONTACT_REQUEST_CREATE:
    case LEDGER_CONTACT_REQUEST_ACCEPT:
    case LEDGER_CONTACT_REQUEST_DECLINE:
    case LEDGER_CONTACT_REQUEST_WITHDRAW:
    case LEDGER_CONTACT_REMOVE:
    case LEDGER_BLOCK_PUT:
    case LEDGER_BLOCK_DELETE:
    case LEDGER_CALL_APPEND:
        return ledger_request_user(request);
    case LEDGER_CHAT_CHANGE:
    case LEDGER_CHAT_MEMBER_ADD:
    case LEDGER_CHAT_MEMBER_REMOVE:
    case LEDGER_CHAT_ADMIN_PUT:
    case LEDGER_CHAT_ADMIN_DELETE:
        return request->input.chat;
    case LEDGER_REVOKE:
        return SLICE("");
    default:
        return SLICE_NONE;
    }
}

static struct turns_line *find_line(const struct dynamodb_turns *turns, struct slice key)
{
    struct table_node *node = key.data ? table_find(&turns->lines, key) : NULL;
    return node ? CONTAINER_OF(node, struct turns_line, node) : NULL;
}

static void make_line(struct dynamodb_turns *turns, struct slice key)
{
    struct turns_line *line = malloc(sizeof(*line) + key.len);
    if (!line)
        return; /* then the next one does not wait, and may fail */
    memcpy(line->key_bytes, key.data, key.len);
    line->key = (struct slice){line->key_bytes, key.len};
    line->first = NULL;
    line->last_next = &line->first;
    table_insert(&turns->lines, &line->node, key);
}

bool dynamodb_turns_take(struct dynamodb_turns *turns, struct ledger_request *request)
{
    struct slice key = get_line_key(request);
    struct turns_line *line = find_line(turns, key);
    if (!line) {
        if (key.data)
            make_line(turns, key);
        return true;
    }
    request->next = NULL;
    *line->last_next = request;
    line->last_next = &request->next;
    return false;
}

struct ledger_request *dynamodb_turns_next(struct dynamodb_turns *turns,
                                           const struct ledger_request *request)
{
    struct turns_line *line = find_line(turns, get_line_key(request));
    struct ledger_request *next = line ? line->first : NULL;
    if (next) {
        line->first = next->next;
        if (!line->first)
            line->last_next = &line->first;
        next->next = NULL;
    } else if (line) {
        table_remove(&turns->lines, &line->node);
        free(line);
    }
    return next;
}
