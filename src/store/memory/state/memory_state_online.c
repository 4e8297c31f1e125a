/* Who is online, page by page: shard after shard, and in each in the order of the scan of its table (base/table.h). So a
 * page continues after any user id, also one that has left since. */
#include "store/memory/state/memory_state_internal.h"

#include "base/buffer.h"
#include "base/id_list.h"

#include <stdlib.h>
#include <string.h>

struct online_user {
    uint64_t place; /* in the scan */
    size_t id_len;
    char id[USER_ID_BYTES_MAX];
};

struct online_page {
    const struct memory_shard *shard; /* locked */
    struct slice after;               /* in this shard; empty: from its start */
    uint64_t after_place;
    struct buffer users; /* struct online_user */
};

static struct slice online_user_id(const struct online_user *user)
{
    return (struct slice){user->id, user->id_len};
}

static void add_online_user(struct table_node *node, void *arg)
{
    struct online_page *page = arg;
    const struct memory_user *user = CONTAINER_OF(node, struct memory_user, node);
    struct slice id = {user->id, user->id_len};
    struct online_user entry = {.place = table_cursor_of(&page->shard->users, id),
                                .id_len = id.len};
    bool is_past = page->after.len && entry.place == page->after_place &&
                   id_list_compare(id, page->after) <= 0;
    if (user->status < PRESENCE_AWAY || is_past)
        return;
    memcpy(entry.id, id.data, id.len);
    buffer_append(&page->users, &entry, sizeof(entry));
}

static int compare_online_users(const void *a, const void *b)
{
    const struct online_user *one = a, *other = b;
    if (one->place != other->place)
        return one->place < other->place ? -1 : 1;
    return id_list_compare(online_user_id(one), online_user_id(other));
}

static size_t online_page_count(const struct online_page *page)
{
    return page->users.len / sizeof(struct online_user);
}

/* Adds users of the locked shard until the page has more than `limit`: one more tells that there is a next page. */
static void fill_online_page(struct online_page *page, struct memory_shard *shard, size_t limit)
{
    uint64_t cursor = page->after_place;
    bool has_more = true;
    page->shard = shard;
    while (has_more && online_page_count(page) <= limit && !page->users.failed) {
        size_t count = online_page_count(page);
        has_more = table_scan(&shard->users, &cursor, add_online_user, page);
        struct online_user *users = (struct online_user *)(void *)page->users.data;
        if (online_page_count(page) > count + 1)
            qsort(users + count, online_page_count(page) - count, sizeof(*users),
                  compare_online_users);
    }
}

void memory_state_online(struct state_store *store, struct slice after, size_t limit,
                         state_online_done done, void *arg)
{
    struct memory_state *state = memory_state_port_of(store)->state;
    struct online_page page = {.after = after, .users = BUFFER_INIT};
    size_t first = after.len ? memory_state_shard_of(state, after) : 0;
    for (size_t i = first; i < MEMORY_SHARDS && online_page_count(&page) <= limit; i++) {
        struct memory_shard *shard = memory_state_lock(state, i);
        page.after_place = page.after.len ? table_cursor_of(&shard->users, after) : 0;
        fill_online_page(&page, shard, limit);
        memory_state_unlock(shard);
        page.after = SLICE_NONE;
    }
    const struct online_user *users = (const struct online_user *)(void *)page.users.data;
    size_t found = online_page_count(&page), count = found < limit ? found : limit;
    struct slice *ids = calloc(count + 1, sizeof(*ids));
    for (size_t i = 0; ids && i < count; i++)
        ids[i] = online_user_id(&users[i]);
    if (ids && !page.users.failed)
        done(arg, STATE_OK,
             &(struct state_online){ids, count, found > limit ? ids[count - 1] : SLICE_NONE});
    else
        done(arg, STATE_UNAVAILABLE, NULL);
    free(ids);
    buffer_free(&page.users);
}

void memory_state_count_online(struct state_store *store, state_count_done done, void *arg)
{
    struct memory_state *state = memory_state_port_of(store)->state;
    size_t count = 0;
    for (size_t i = 0; i < MEMORY_SHARDS; i++) {
        struct memory_shard *shard = memory_state_lock(state, i);
        count += shard->online_count;
        memory_state_unlock(shard);
    }
    done(arg, STATE_OK, count);
}
