#include "api/contact_events.h"

#include <stdlib.h>
#include <string.h>

bool contact_events_are_of_users(struct exchange **exchange)
{
    const struct config *config = api_context_of(*exchange)->sessions->config;
    if (config->contacts.managed_by == CONTACTS_MANAGED_BY_USERS)
        return true;
    exchange_error(exchange, 403, ERROR_FORBIDDEN,
                   "contacts are managed by the application here: ask it to make or end a "
                   "contact; you may block a user");
    return false;
}

static void send_contact_event(struct session_context *sessions, struct slice to,
                               enum message_type type, struct contact_fields fields)
{
    struct message message = {.type = type, .contact = fields};
    delivery_send(sessions->delivery, &to, 1, &message, NULL);
}

static void send_contact_event_to_both(struct session_context *sessions, enum message_type type,
                                       struct slice a, struct slice b)
{
    send_contact_event(sessions, a, type, (struct contact_fields){.user_id = b});
    send_contact_event(sessions, b, type, (struct contact_fields){.user_id = a});
}

void contact_events_requested(struct session_context *sessions, struct slice request_id,
                              struct slice from, struct slice to)
{
    send_contact_event(sessions, to, MESSAGE_CONTACT_REQUEST,
                       (struct contact_fields){request_id, from});
}

/* ---- telling ---- */

void contact_events_tell_made(struct session_context *sessions, struct slice user,
                              struct slice other, bool is_new, visibility_change_done done,
                              void *arg)
{
    if (is_new)
        send_contact_event_to_both(sessions, MESSAGE_CONTACT_ACCEPTED, user, other);
    visibility_change_of_relation(sessions->presence,
                                  is_new ? VISIBILITY_CONTACT_MADE : VISIBILITY_REPEATED, user,
                                  other, false, done, arg);
}

/* A removal that is told when the visibility change is complete. */
struct contact_removal {
    struct session_context *sessions;
    visibility_change_done done;
    void *arg;
    struct slice user;
    struct slice other;
    char bytes[];
};

static void on_removal_visible(void *arg)
{
    struct contact_removal *removal = arg;
    send_contact_event_to_both(removal->sessions, MESSAGE_CONTACT_REMOVED, removal->user,
                               removal->other);
    removal->done(removal->arg);
    free(removal);
}

static struct contact_removal *make_contact_removal(struct session_context *sessions,
                                                    struct slice user, struct slice other)
{
    struct contact_removal *removal = malloc(sizeof(*removal) + user.len + other.len);
    if (!removal)
        return NULL;
    char *end = mempcpy(removal->bytes, user.data, user.len);
    memcpy(end, other.data, other.len);
    *removal = (struct contact_removal){
        .sessions = sessions, .user = {removal->bytes, user.len}, .other = {end, other.len}};
    return removal;
}

/* Without memory for the removal nobody gets contact_removed; the visibility changes all the same. */
void contact_events_tell_changed(struct session_context *sessions, enum visibility_cause cause,
                                 struct slice user, struct slice other, bool contact_ended,
                                 visibility_change_done done, void *arg)
{
    struct contact_removal *removal =
        contact_ended ? make_contact_removal(sessions, user, other) : NULL;
    if (contact_ended)
        call_plane_end_between(sessions->calls, user, other);
    if (removal) {
        removal->done = done;
        removal->arg = arg;
    }
    visibility_change_of_relation(sessions->presence, cause, user, other, contact_ended,
                                  removal ? on_removal_visible : done, removal ? removal : arg);
}

/* ---- answering ---- */

/* An answer that waits until the visibility change is complete. */
struct contact_answer {
    struct exchange *exchange;
    unsigned status;
    struct buffer json;
};

static void on_contact_told(void *arg)
{
    struct contact_answer *answer = arg;
    exchange_reply_json(&answer->exchange, answer->status, &answer->json);
    free(answer);
}

/* Without memory it answers 503. The change stands all the same, and queries show it. */
void contact_events_made(struct exchange *exchange, struct slice user, struct slice other,
                         bool is_new, unsigned status, struct buffer *json)
{
    struct contact_answer *answer = malloc(sizeof(*answer));
    if (!answer) {
        buffer_free(json);
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    *answer = (struct contact_answer){exchange, status, *json};
    *json = BUFFER_INIT;
    contact_events_tell_made(api_context_of(exchange)->sessions, user, other, is_new,
                             on_contact_told, answer);
}

static void on_contact_change_told(void *arg)
{
    struct exchange *exchange = arg;
    exchange_reply_empty(&exchange);
}

void contact_events_changed(struct exchange *exchange, enum visibility_cause cause,
                            struct slice other, bool contact_ended)
{
    contact_events_tell_changed(api_context_of(exchange)->sessions, cause, exchange_user(exchange),
                                other, contact_ended, on_contact_change_told, exchange);
}
