/*
 * GET and POST /v1/contact-requests, POST /v1/contact-requests/{id}/accept and /decline,
 * DELETE /v1/contact-requests/{id}
 */
#include "api/admin_json.h"
#include "api/api_routes.h"
#include "api/contact_events.h"
#include "api/page_query.h"

#include <stdlib.h>

enum { CONTACT_REQUESTS_PAGE = 1000 };

/* ---- creating ---- */

/* A contact request that waits and one that is never shown look the same, so that nobody can tell that the other user
 * has blocked them. */
static void write_own_contact_request(struct buffer *json, struct slice id, struct slice to,
                                      const char *status)
{
    json_write_object(json);
    json_write_key(json, SLICE("id"));
    if (id.data)
        json_write_string(json, id);
    else
        json_write_null(json);
    json_write_key_string(json, SLICE("to"), to);
    json_write_key_string(json, SLICE("status"), slice_of(status));
    json_write_object_end(json);
}

static void on_contact_request_created(void *arg, const struct ledger_contact_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct slice user = exchange_user(exchange);
    const struct ledger_contact_request *request = &outcome->request;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    if (outcome->result == LEDGER_CONTACT_ACCEPTED) {
        /* each had sent the other a contact request */
        write_own_contact_request(&json, request->id, request->from, "accepted");
        contact_events_made(exchange, user, request->from, true, 201, &json);
        return;
    }
    if (outcome->result == LEDGER_CONTACT_ALREADY) {
        /* perhaps by an earlier attempt whose answer was lost */
        write_own_contact_request(&json, request->id, request->to, "accepted");
        contact_events_made(exchange, user, request->to, false, 200, &json);
        return;
    }
    write_own_contact_request(&json, request->id, request->to, "pending");
    if (outcome->tell_other_side)
        contact_events_requested(api_context_of(exchange)->sessions, request->id, user,
                                 request->to);
    exchange_reply_json(&exchange, outcome->result == LEDGER_CONTACT_REQUESTED ? 201 : 200, &json);
}

void rest_contact_requests_post(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    char id[ULID_TEXT_LEN];
    struct slice to;
    if (!contact_events_are_of_users(&exchange) || !api_read_json(&exchange))
        return;
    if (!fields_string(fields_find(&sessions->scratch, "to"), &to) || !user_id_valid(to)) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "to must be a user id");
        return;
    }
    if (slice_equal(to, exchange_user(exchange))) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "a user cannot be their own contact");
        return;
    }
    struct ulid ulid = ulid_make(sessions->loop->clock.wall_ms, sessions->random);
    ulid_write(id, &ulid);
    ledger_contact_request_create(sessions->ledger, (struct slice){id, sizeof(id)},
                                  exchange_user(exchange), to, on_contact_request_created,
                                  exchange);
}

/* ---- answering and withdrawing ---- */

static void write_answered_contact_request(struct buffer *json, struct slice id, struct slice from,
                                           const char *status)
{
    json_write_object(json);
    json_write_key_string(json, SLICE("id"), id);
    json_write_key_string(json, SLICE("from"), from);
    json_write_key_string(json, SLICE("status"), slice_of(status));
    json_write_object_end(json);
}

static void on_contact_request_accepted(void *arg, const struct ledger_contact_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    write_answered_contact_request(&json, exchange->parameters[0], outcome->request.from,
                                   "accepted");
    contact_events_made(exchange, exchange_user(exchange), outcome->request.from,
                        outcome->result == LEDGER_CONTACT_ACCEPTED, 200, &json);
}

void rest_contact_request_accept(struct exchange *exchange)
{
    if (contact_events_are_of_users(&exchange))
        ledger_contact_request_accept(api_context_of(exchange)->sessions->ledger,
                                      exchange_user(exchange), exchange->parameters[0],
                                      on_contact_request_accepted, exchange);
}

static void on_contact_request_declined(void *arg, const struct ledger_contact_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    write_answered_contact_request(&json, exchange->parameters[0], outcome->request.from,
                                   "declined");
    exchange_reply_json(&exchange, 200, &json);
}

void rest_contact_request_decline(struct exchange *exchange)
{
    ledger_contact_request_decline(api_context_of(exchange)->sessions->ledger,
                                   exchange_user(exchange), exchange->parameters[0],
                                   on_contact_request_declined, exchange);
}

static void on_contact_request_withdrawn(void *arg, const struct ledger_contact_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        api_ledger_error(&exchange, outcome->status);
}

void rest_contact_request_delete(struct exchange *exchange)
{
    ledger_contact_request_withdraw(api_context_of(exchange)->sessions->ledger,
                                    exchange_user(exchange), exchange->parameters[0],
                                    on_contact_request_withdrawn, exchange);
}

/* ---- listing: first incoming, then outgoing contact requests ---- */

struct contact_request_listing {
    struct exchange *exchange;
    struct page_query page;
    struct buffer json;
    bool has_more;
};

static void write_contact_request_list(struct contact_request_listing *listing, const char *name,
                                       const char *user_key,
                                       const struct ledger_contact_requests_outcome *outcome,
                                       bool incoming)
{
    struct buffer *json = &listing->json;
    json_write_key(json, slice_of(name));
    json_write_array(json);
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_contact_request *request = &outcome->requests[i];
        json_write_object(json);
        json_write_key_string(json, SLICE("id"), request->id);
        json_write_key_string(json, slice_of(user_key), incoming ? request->from : request->to);
        admin_write_time(json, SLICE("created_at"), request->created_at_ms);
        json_write_object_end(json);
    }
    json_write_array_end(json);
    listing->has_more |= outcome->has_more;
}

static void abandon_contact_request_listing(struct contact_request_listing *listing,
                                            enum ledger_status status)
{
    api_ledger_error(&listing->exchange, status);
    buffer_free(&listing->json);
    free(listing);
}

static void on_outgoing_contact_requests_listed(
    void *arg, const struct ledger_contact_requests_outcome *outcome)
{
    struct contact_request_listing *listing = arg;
    if (outcome->status != LEDGER_OK) {
        abandon_contact_request_listing(listing, outcome->status);
        return;
    }
    write_contact_request_list(listing, "outgoing", "to", outcome, false);
    json_write_key_bool(&listing->json, SLICE("has_more"), listing->has_more);
    json_write_object_end(&listing->json);
    exchange_reply_json(&listing->exchange, 200, &listing->json);
    free(listing);
}

static void on_incoming_contact_requests_listed(
    void *arg, const struct ledger_contact_requests_outcome *outcome)
{
    struct contact_request_listing *listing = arg;
    if (outcome->status != LEDGER_OK) {
        abandon_contact_request_listing(listing, outcome->status);
        return;
    }
    json_write_object(&listing->json);
    write_contact_request_list(listing, "incoming", "from", outcome, true);
    ledger_contact_requests_list(api_context_of(listing->exchange)->sessions->ledger,
                                 exchange_user(listing->exchange), LEDGER_OUTGOING,
                                 listing->page.after, listing->page.limit,
                                 on_outgoing_contact_requests_listed, listing);
}

void rest_contact_requests_get(struct exchange *exchange)
{
    struct contact_request_listing *listing = malloc(sizeof(*listing));
    if (!listing) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    *listing = (struct contact_request_listing){.exchange = exchange};
    if (!page_query_read(&exchange, CONTACT_REQUESTS_PAGE, &listing->page)) {
        free(listing);
        return;
    }
    ledger_contact_requests_list(api_context_of(exchange)->sessions->ledger,
                                 exchange_user(exchange), LEDGER_INCOMING, listing->page.after,
                                 listing->page.limit, on_incoming_contact_requests_listed, listing);
}
