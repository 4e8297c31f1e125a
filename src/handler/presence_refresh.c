#include "handler/presence_refresh.h"

#include "handler/request.h"
#include "presence/look.h"
#include "presence/presence_event.h"

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
    struct request *request = arg;
    struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT, .snapshot = {presences, count}};
    if (ok)
        request_reply(&request, &snapshot);
    else
        request_end(&request);
}

void presence_refresh(struct session *session)
{
    struct slice users[FIELDS_USERS_MAX];
    size_t count = gather_users(session, users);
    if (count == 0)
        return;
    struct request *request =
        request_open(session, &(struct message){.type = MESSAGE_QUERY_PRESENCE});
    struct look_handler handler = {.done = looked, .arg = request};
    if (request)
        presence_look(session->context->presence, session_user(session), users, count, &handler);
}
