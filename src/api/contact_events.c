#include "api/contact_events.h"

#include <stdlib.h>
#include <string.h>

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

/* An answer that waits until the visibility change is complete. */
struct contact_answer {
    struct exchange *exchange;
    unsigned status;
    struct buffer json; /* of a 2xx other than 204 */
    bool contact_ended;
    struct slice other;
    char other_bytes[];
};

static void on_contact_visibility_changed(void *arg)
{
    struct contact_answer *answer = arg;
    struct exchange *exchange = answer->exchange;
    if (answer->contact_ended)
        send_contact_event_to_both(api_context_of(exchange)->sessions, MESSAGE_CONTACT_REMOVED,
                                   exchange_user(exchange), answer->other);
    if (answer->status == 204)
        exchange_reply_empty(&exchange);
    else
        exchange_reply_json(&exchange, answer->status, &answer->json);
    free(answer);
}

/* Returns NULL after answering 503. The change stands all the same, and queries show it. */
static struct contact_answer *make_contact_answer(struct exchange *exchange, struct slice other,
                                                  unsigned status)
{
    struct contact_answer *answer = malloc(sizeof(*answer) + other.len);
    if (!answer) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return NULL;
    }
    *answer = (struct contact_answer){.exchange = exchange, .status = status};
    memcpy(answer->other_bytes, other.data, other.len);
    answer->other = (struct slice){answer->other_bytes, other.len};
    return answer;
}

void contact_events_made(struct exchange *exchange, struct slice user, struct slice other,
                         bool is_new, unsigned status, struct buffer *json)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct contact_answer *answer = make_contact_answer(exchange, other, status);
    if (!answer) {
        buffer_free(json);
        return;
    }
    answer->json = *json;
    *json = BUFFER_INIT;
    if (is_new)
        send_contact_event_to_both(sessions, MESSAGE_CONTACT_ACCEPTED, user, answer->other);
    visibility_change_of_relation(sessions->presence,
                                  is_new ? VISIBILITY_CONTACT_MADE : VISIBILITY_REPEATED, user,
                                  answer->other, false, on_contact_visibility_changed, answer);
}

void contact_events_changed(struct exchange *exchange, enum visibility_cause cause,
                            struct slice other, bool contact_ended)
{
    struct contact_answer *answer = make_contact_answer(exchange, other, 204);
    if (!answer)
        return;
    answer->contact_ended = contact_ended;
    if (contact_ended)
        call_plane_end_between(api_context_of(exchange)->sessions->calls, exchange_user(exchange),
                               answer->other);
    visibility_change_of_relation(api_context_of(exchange)->sessions->presence, cause,
                                  exchange_user(exchange), answer->other, contact_ended,
                                  on_contact_visibility_changed, answer);
}
