#include "presence/uncertain_users.h"

#include "base/container.h"
#include "log/log.h"
#include "presence/presence_plane.h"

#include <stdlib.h>
#include <string.h>

struct doubted {
    struct list place;
    enum presence_news news;
    uint8_t user_id_len;
    char user_id[];
};

/* One read under way. */
struct doubt_reading {
    struct presence_plane *plane;
    size_t count;
    struct doubted *items[UNCERTAIN_USERS_PER_READ];
    struct slice users[UNCERTAIN_USERS_PER_READ];
};

void uncertain_users_init(struct uncertain_users *doubts)
{
    *doubts = (struct uncertain_users){0};
    list_init(&doubts->users);
}

static struct doubted *doubted_of(struct list *place)
{
    return CONTAINER_OF(place, struct doubted, place);
}

static struct doubted *take_oldest(struct uncertain_users *doubts)
{
    struct doubted *oldest = doubted_of(doubts->users.next);
    list_remove(&oldest->place);
    doubts->count--;
    return oldest;
}

static void put(struct uncertain_users *doubts, struct doubted *doubted)
{
    list_append(&doubts->users, &doubted->place);
    doubts->count++;
}

void uncertain_users_free(struct uncertain_users *doubts)
{
    for (struct list *at = doubts->users.next, *next; at != &doubts->users; at = next) {
        next = at->next;
        free(doubted_of(at));
    }
}

void uncertain_users_add(struct presence_plane *plane, struct slice user_id,
                         enum presence_news news)
{
    bool room = plane->doubts.count < UNCERTAIN_USERS_MAX;
    struct doubted *doubted = room ? malloc(sizeof(*doubted) + user_id.len) : NULL;
    if (!doubted) {
        log_warn("presence_in_doubt", "user=%s", log_quote(user_id));
        return;
    }
    *doubted = (struct doubted){.news = news, .user_id_len = (uint8_t)user_id.len};
    memcpy(doubted->user_id, user_id.data, user_id.len);
    put(&plane->doubts, doubted);
}

/* Of whom the store knows nothing there is nothing to tell. */
static void tell(struct presence_plane *plane, const struct presence *presence,
                 enum presence_news news)
{
    bool left = presence->status == PRESENCE_OFFLINE;
    if (presence->version > 0)
        presence_tell(plane,
                      &(struct presence_change){.presence = *presence,
                                                .timestamp_ms = plane->clock->wall_ms,
                                                .news = left ? PRESENCE_NEWS_OFFLINE : news});
}

static void have_read(void *arg, enum state_status status, const struct presence *presences,
                      size_t count)
{
    struct doubt_reading *reading = arg;
    struct presence_plane *plane = reading->plane;
    plane->doubts.reading = false;
    for (size_t i = 0; i < reading->count; i++) {
        struct doubted *doubted = reading->items[i];
        if (status != STATE_OK) {
            put(&plane->doubts, doubted);
            continue;
        }
        if (i < count)
            tell(plane, &presences[i], doubted->news);
        free(doubted);
    }
    free(reading);
}

void uncertain_users_run(struct presence_plane *plane)
{
    struct uncertain_users *doubts = &plane->doubts;
    if (doubts->count == 0 || doubts->reading || !state_available(plane->store) ||
        resync_may_have_forgotten(plane))
        return;
    struct doubt_reading *reading = malloc(sizeof(*reading));
    if (!reading)
        return;
    reading->plane = plane;
    for (reading->count = 0; doubts->count > 0 && reading->count < UNCERTAIN_USERS_PER_READ;) {
        struct doubted *doubted = take_oldest(doubts);
        reading->items[reading->count] = doubted;
        reading->users[reading->count++] = (struct slice){doubted->user_id, doubted->user_id_len};
    }
    doubts->reading = true;
    state_read(plane->store, reading->users, reading->count, have_read, reading);
}
