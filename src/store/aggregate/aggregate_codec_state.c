#include "store/aggregate/aggregate_codec_internal.h"

#include <string.h>

/* ---- values ---- */

static void pass_lease(struct wire *wire, struct lease *lease)
{
    aggregate_pass_ulid(wire, &lease->conn_id);
    aggregate_pass_user(wire, &lease->user_id);
    wire_text(wire, &lease->device_id, 0, DEVICE_ID_BYTES_MAX);
    aggregate_pass_gateway(wire, &lease->gateway_id);
    wire_signed(wire, &lease->connected_at_ms);
    wire_signed(wire, &lease->last_heartbeat_ms);
    wire_bool(wire, &lease->idle);
    wire_signed(wire, &lease->known_since_ms);
    wire_count(wire, &lease->user_leases_max, UINT32_MAX);
    aggregate_pass_ulid(wire, &lease->silent_conn_id);
    wire_signed(wire, &lease->silent_heard_ms);
    wire_signed(wire, &lease->version_min);
}

static void pass_presence(struct wire *wire, struct presence *presence)
{
    unsigned status = presence->status, reason = presence->reason;
    aggregate_pass_optional_user(wire, &presence->user_id);
    wire_choice(wire, &status, PRESENCE_ONLINE + 1);
    wire_choice(wire, &reason, PRESENCE_REASON_NOT_CONTACTS + 1);
    wire_bool(wire, &presence->in_call);
    wire_bool(wire, &presence->stale);
    wire_bool(wire, &presence->unrecorded);
    wire_signed(wire, &presence->last_seen_ms);
    wire_signed(wire, &presence->version);
    if (wire->out)
        return;
    presence->status = status;
    presence->reason = reason;
}

static void pass_transition(struct wire *wire, struct state_transition *transition)
{
    wire_bool(wire, &transition->changed);
    pass_presence(wire, &transition->presence);
    wire_signed(wire, &transition->at_ms);
    wire_bool(wire, &transition->was_here);
    wire_bool(wire, &transition->undecided);
    aggregate_pass_ulid(wire, &transition->displaced);
    aggregate_pass_gateway(wire, &transition->displaced_gateway);
}

static void pass_gateway_info(struct wire *wire, struct gateway_info *info)
{
    wire_text(wire, &info->gateway_id, 1, GATEWAY_ID_BYTES_MAX);
    aggregate_pass_size(wire, &info->connections);
    wire_signed(wire, &info->started_at_ms);
    wire_bool(wire, &info->draining);
    wire_text(wire, &info->peer_address, 0, STATE_PEER_ADDRESS_MAX);
}

/* ---- items of lists ---- */

static void pass_lease_item(struct wire *wire, void *item)
{
    pass_lease(wire, item);
}

static void pass_presence_item(struct wire *wire, void *item)
{
    pass_presence(wire, item);
}

static void pass_transition_item(struct wire *wire, void *item)
{
    pass_transition(wire, item);
}

static void pass_gateway_item(struct wire *wire, void *item)
{
    pass_gateway_info(wire, item);
}

static void pass_renewal_item(struct wire *wire, void *item)
{
    struct lease_renewal *renewal = item;
    aggregate_pass_ulid(wire, &renewal->conn_id);
    aggregate_pass_user(wire, &renewal->user_id);
    wire_signed(wire, &renewal->last_heartbeat_ms);
}

/* What became of a renewal: its place says which one it is. */
static void pass_renewed_item(struct wire *wire, void *item)
{
    enum { RENEWED, LOST, FAILED, RESULTS };
    struct lease_renewal *renewal = item;
    unsigned result = renewal->lost ? LOST : renewal->failed ? FAILED : RENEWED;
    wire_choice(wire, &result, RESULTS);
    if (wire->out)
        return;
    renewal->lost = result == LOST;
    renewal->failed = result == FAILED;
}

static void pass_route_item(struct wire *wire, void *item)
{
    struct state_route *route = item;
    wire_text(wire, &route->gateway_id, 1, GATEWAY_ID_BYTES_MAX);
    wire_ids(wire, &route->users, &route->count, AGGREGATE_USERS_MAX, USER_ID_BYTES_MAX);
}

/* A cause is a terminated text: when reading, it is copied to memory of its own. */
static void pass_cause(struct wire *wire, const char **cause)
{
    struct slice text = slice_of(*cause);
    wire_text(wire, &text, 0, AGGREGATE_CAUSE_BYTES_MAX);
    if (wire->out)
        return;
    char *copy = wire->failed ? NULL : wire->alloc(wire->alloc_arg, text.len + 1);
    *cause = copy ? copy : "";
    if (!copy) {
        wire_fail(wire);
        return;
    }
    if (text.len)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    if (strlen(copy) != text.len)
        wire_fail(wire);
}

static void pass_history_item(struct wire *wire, void *item)
{
    struct state_history *history = item;
    unsigned status = history->status;
    wire_signed(wire, &history->at_ms);
    wire_choice(wire, &status, PRESENCE_ONLINE + 1);
    wire_signed(wire, &history->version);
    pass_cause(wire, &history->cause);
    if (!wire->out)
        history->status = status;
}

/* ---- arguments ---- */

void aggregate_pass_put(struct wire *wire, union aggregate_arguments *arguments)
{
    pass_gateway_info(wire, &arguments->put.info);
    wire_signed(wire, &arguments->put.put_ms);
}

void aggregate_pass_process(struct wire *wire, union aggregate_arguments *arguments)
{
    wire_text(wire, &arguments->process, 1, AGGREGATE_ID_BYTES_MAX);
}

void aggregate_pass_open(struct wire *wire, union aggregate_arguments *arguments)
{
    pass_lease(wire, &arguments->open);
}

void aggregate_pass_settle(struct wire *wire, union aggregate_arguments *arguments)
{
    struct state_claim *claim = &arguments->settle;
    aggregate_pass_user(wire, &claim->user_id);
    aggregate_pass_ulid(wire, &claim->conn_id);
    wire_signed(wire, &claim->left_at_ms);
    wire_signed(wire, &claim->version_min);
    wire_bool(wire, &claim->was_connected);
    wire_bool(wire, &claim->is_final);
}

void aggregate_pass_renew(struct wire *wire, union aggregate_arguments *arguments)
{
    AGGREGATE_PASS_LIST(wire, arguments->renew.items, arguments->renew.count,
                        AGGREGATE_RENEWALS_MAX, pass_renewal_item);
}

void aggregate_pass_subject(struct wire *wire, union aggregate_arguments *arguments)
{
    struct aggregate_subject *subject = &arguments->subject;
    aggregate_pass_user(wire, &subject->user_id);
    wire_bool(wire, &subject->has_conn);
    if (subject->has_conn)
        aggregate_pass_ulid(wire, &subject->conn_id);
    wire_bool(wire, &subject->flag);
}

void aggregate_pass_users(struct wire *wire, union aggregate_arguments *arguments)
{
    wire_ids(wire, &arguments->users.items, &arguments->users.count, AGGREGATE_USERS_MAX,
             USER_ID_BYTES_MAX);
}

void aggregate_pass_conn_id(struct wire *wire, union aggregate_arguments *arguments)
{
    aggregate_pass_ulid(wire, &arguments->conn_id);
}

void aggregate_pass_max(struct wire *wire, union aggregate_arguments *arguments)
{
    wire_number(wire, &arguments->max, UINT32_MAX);
}

void aggregate_pass_page(struct wire *wire, union aggregate_arguments *arguments)
{
    wire_text(wire, &arguments->page.after, 0, STATE_ONLINE_NEXT_MAX);
    wire_number(wire, &arguments->page.limit, STATE_ONLINE_PAGE_MAX);
}

void aggregate_pass_no_arguments(struct wire *wire, union aggregate_arguments *arguments)
{
    (void)wire;
    (void)arguments;
}

/* ---- outcomes ---- */

void aggregate_pass_transition(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    pass_transition(wire, &outcome->transition.transition);
}

void aggregate_pass_transitions(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->transitions.items, outcome->transitions.count,
                        AGGREGATE_ITEMS_MAX, pass_transition_item);
}

void aggregate_pass_renewals(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->renewals.items, outcome->renewals.count,
                        AGGREGATE_RENEWALS_MAX, pass_renewed_item);
}

void aggregate_pass_presences(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->presences.items, outcome->presences.count,
                        AGGREGATE_ITEMS_MAX, pass_presence_item);
}

void aggregate_pass_routes(struct wire *wire, union aggregate_outcome *outcome)
{
    struct state_routes *routes = &outcome->routes.routes;
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, routes->items, routes->count, AGGREGATE_ITEMS_MAX, pass_route_item);
    wire_ids(wire, &routes->parked, &routes->parked_count, AGGREGATE_USERS_MAX, USER_ID_BYTES_MAX);
    aggregate_pass_size(wire, &routes->devices);
}

void aggregate_pass_leases(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->leases.items, outcome->leases.count, STATE_LEASES_MAX,
                        pass_lease_item);
}

void aggregate_pass_history(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->history.items, outcome->history.count, STATE_HISTORY_MAX,
                        pass_history_item);
}

void aggregate_pass_gateways(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->gateways.items, outcome->gateways.count, AGGREGATE_ITEMS_MAX,
                        pass_gateway_item);
}

void aggregate_pass_online(struct wire *wire, union aggregate_outcome *outcome)
{
    struct state_online *page = &outcome->online.page;
    aggregate_pass_status(wire, &outcome->status);
    wire_ids(wire, &page->users, &page->count, STATE_ONLINE_PAGE_MAX, USER_ID_BYTES_MAX);
    wire_text(wire, &page->next, 0, STATE_ONLINE_NEXT_MAX);
}

void aggregate_pass_count(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    wire_number(wire, &outcome->count.count, UINT64_MAX);
}

void aggregate_pass_only_status(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
}

void aggregate_pass_no_outcome(struct wire *wire, union aggregate_outcome *outcome)
{
    (void)wire;
    (void)outcome;
}
