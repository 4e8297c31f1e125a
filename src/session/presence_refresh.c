#include "session/presence_refresh.h"

#include "presence/presence_event.h"
#include "presence/presence_query.h"
#include "presence/subscription.h"
#include "session/pending_reply.h"

/* One snapshot of so many fits any queue; who has more friends asks for them (GET /v1/friends). */
enum { REFRESHED_FRIENDS_MAX = 1000 };

static size_t gather_users(const struct session *session, struct slice users[FIELDS_USERS_MAX])
{
    size_t count = 0;
    const struct subscription *at = session->endpoint.subscriptions;
    for (; at && count < FIELDS_USERS_MAX; at = at->next) {
        struct slice user =
            presence_topic_user((struct slice){at->topic->name, at->topic->name_len});
        if (user.data)
            users[count++] = user;
    }
    return count;
}

/* A look that fails is not repeated: the next change, or a query, tells. */
static void looked(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct pending_reply *request = arg;
    struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT, .snapshot = {presences, count}};
    if (ok && request->session)
        subscription_told(request->session->context->presence, &request->session->endpoint,
                          presences, count);
    if (ok)
        pending_reply_reply(&request, &snapshot);
    else
        pending_reply_end(&request);
}

static struct pending_reply *open_request(struct session *session)
{
    return pending_reply_open(session, &(struct message){.type = MESSAGE_QUERY_PRESENCE});
}

static void look(struct pending_reply *request, const struct slice *users, size_t count)
{
    struct session *session = request->session;
    struct presence_query_handler handler = {.done = looked, .arg = request};
    presence_query(session->context->presence, session_user(session), users, count, &handler);
}

static void listed_friends(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct pending_reply *request = arg;
    size_t count = outcome->count < REFRESHED_FRIENDS_MAX ? outcome->count : REFRESHED_FRIENDS_MAX;
    if (outcome->status == LEDGER_OK && count > 0 && request->session)
        look(request, outcome->ids, count);
    else
        pending_reply_end(&request);
}

void presence_refresh(struct session *session)
{
    struct slice users[FIELDS_USERS_MAX];
    size_t count = gather_users(session, users);
    struct pending_reply *subscribed = count > 0 ? open_request(session) : NULL;
    if (subscribed)
        look(subscribed, users, count);
    struct pending_reply *friends = open_request(session);
    if (friends)
        ledger_contacts_list(session->context->ledger, session_user(session), listed_friends,
                             friends);
}
