#include "session/presence_refresh.h"

#include "presence/presence_event.h"
#include "presence/presence_query.h"
#include "presence/subscription.h"
#include "session/pending_reply.h"

/* One snapshot of so many fits any queue; a client of a user with more contacts lists them (GET /v1/friends). */
enum { REFRESHED_CONTACTS_MAX = 1000 };

/* A query that fails is not repeated: the next change, or a query of the client, makes up for it. */
static void on_refreshed_presences_read(void *arg, bool ok, const struct presence *presences,
                                        size_t count)
{
    struct pending_reply *pending = arg;
    struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT, .snapshot = {presences, count}};
    if (ok && pending->session)
        subscription_told(pending->session->context->presence, &pending->session->endpoint,
                          presences, count);
    if (ok)
        pending_reply_send(&pending, &snapshot);
    else
        pending_reply_end(&pending);
}

static void read_refreshed_presences(struct pending_reply *pending, const struct slice *users,
                                     size_t count)
{
    struct session *session = pending->session;
    struct presence_query_handler handler = {.done = on_refreshed_presences_read, .arg = pending};
    presence_query(session->context->presence, session_user(session), users, count, &handler);
}

static void on_refresh_contacts_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct pending_reply *pending = arg;
    size_t count =
        outcome->count < REFRESHED_CONTACTS_MAX ? outcome->count : REFRESHED_CONTACTS_MAX;
    if (outcome->status == LEDGER_OK && count > 0 && pending->session)
        read_refreshed_presences(pending, outcome->ids, count);
    else
        pending_reply_end(&pending);
}

void presence_refresh(struct session *session)
{
    const struct message query = {.type = MESSAGE_QUERY_PRESENCE};
    struct slice users[FIELDS_USERS_MAX];
    size_t count = 0;
    const struct subscription *at = session->endpoint.subscriptions;
    for (; at && count < FIELDS_USERS_MAX; at = at->next) {
        struct slice user =
            presence_topic_user((struct slice){at->topic->name, at->topic->name_len});
        if (user.data)
            users[count++] = user;
    }
    struct pending_reply *subscribed = count > 0 ? pending_reply_open(session, &query) : NULL;
    if (subscribed)
        read_refreshed_presences(subscribed, users, count);
    struct pending_reply *contacts = pending_reply_open(session, &query);
    if (contacts)
        ledger_contacts_list(session->context->ledger, session_user(session),
                             on_refresh_contacts_listed, contacts);
}
