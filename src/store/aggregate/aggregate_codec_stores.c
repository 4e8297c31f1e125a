#include "store/aggregate/aggregate_codec_internal.h"

/* ---- social graphs ---- */

static void pass_id_list(struct wire *wire, struct id_list *list, size_t bytes_max)
{
    wire_ids(wire, &list->ids, &list->count, ID_LIST_COUNT_MAX, bytes_max);
}

static void pass_visibility(struct wire *wire, uint8_t *visibility)
{
    uint64_t number = *visibility;
    wire_number(wire, &number, UINT8_MAX);
    if (!wire->out)
        *visibility = (uint8_t)number;
}

static void pass_graph(struct wire *wire, struct social_graph *graph)
{
    pass_visibility(wire, &graph->presence_visibility);
    pass_visibility(wire, &graph->last_seen_visibility);
    pass_id_list(wire, &graph->contacts, USER_ID_BYTES_MAX);
    pass_id_list(wire, &graph->blocked, USER_ID_BYTES_MAX);
    pass_id_list(wire, &graph->blocked_by, USER_ID_BYTES_MAX);
    pass_id_list(wire, &graph->chats, CHAT_ID_BYTES_MAX);
}

void aggregate_pass_graph_put(struct wire *wire, union aggregate_arguments *arguments)
{
    aggregate_pass_user(wire, &arguments->graph_put.user_id);
    wire_number(wire, &arguments->graph_put.ticket, UINT64_MAX);
    pass_graph(wire, &arguments->graph_put.graph);
}

void aggregate_pass_graph_online(struct wire *wire, union aggregate_arguments *arguments)
{
    aggregate_pass_user(wire, &arguments->graph_online.user_id);
    wire_bool(wire, &arguments->graph_online.online);
    wire_signed(wire, &arguments->graph_online.version);
}

void aggregate_pass_lookup(struct wire *wire, union aggregate_outcome *outcome)
{
    struct graph_lookup *lookup = &outcome->lookup.lookup;
    aggregate_pass_status(wire, &outcome->status);
    wire_bool(wire, &lookup->known);
    wire_bool(wire, &lookup->aged);
    wire_number(wire, &lookup->ticket, UINT64_MAX);
    if (lookup->known)
        pass_graph(wire, &lookup->graph);
}

/* ---- typing ---- */

void aggregate_pass_typing(struct wire *wire, union aggregate_arguments *arguments)
{
    wire_text(wire, &arguments->typing.chat_id, 1, CHAT_ID_BYTES_MAX);
    aggregate_pass_optional_user(wire, &arguments->typing.user_id);
    wire_bool(wire, &arguments->typing.has_conn);
    if (arguments->typing.has_conn)
        aggregate_pass_ulid(wire, &arguments->typing.conn_id);
    wire_number(wire, &arguments->typing.max, UINT32_MAX);
}

void aggregate_pass_typing_start(struct wire *wire, union aggregate_outcome *outcome)
{
    struct typing_outcome *typing = &outcome->typing_start.outcome;
    unsigned result = typing->result;
    aggregate_pass_status(wire, &outcome->status);
    wire_choice(wire, &result, TYPING_LIMITED + 1);
    wire_signed(wire, &typing->retry_after_ms);
    typing->result = result;
}

void aggregate_pass_typing_stop(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    wire_bool(wire, &outcome->typing_stop.stopped);
}

static void pass_typing_user(struct wire *wire, void *item)
{
    struct typing_user *user = item;
    aggregate_pass_user(wire, &user->user_id);
    wire_signed(wire, &user->left_ms);
}

void aggregate_pass_typing_users(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    AGGREGATE_PASS_LIST(wire, outcome->typing_users.items, outcome->typing_users.count,
                        TYPING_READ_MAX, pass_typing_user);
}

/* ---- calls ---- */

static void pass_device(struct wire *wire, struct call_device *device)
{
    aggregate_pass_optional_user(wire, &device->user_id);
    wire_text(wire, &device->device_id, 0, DEVICE_ID_BYTES_MAX);
    aggregate_pass_ulid(wire, &device->conn_id);
}

static void pass_device_item(struct wire *wire, void *item)
{
    pass_device(wire, item);
}

void aggregate_pass_call_arguments(struct wire *wire, union aggregate_arguments *arguments)
{
    wire_text(wire, &arguments->call.id, 0, CALL_ID_BYTES_MAX);
    pass_device(wire, &arguments->call.device);
    aggregate_pass_optional_user(wire, &arguments->call.other);
}

void aggregate_pass_devices(struct wire *wire, union aggregate_arguments *arguments)
{
    AGGREGATE_PASS_LIST(wire, arguments->devices.items, arguments->devices.count, CALL_RENEWALS_MAX,
                        pass_device_item);
}

static void pass_call(struct wire *wire, void *item)
{
    struct call *call = item;
    unsigned state = call->state, reason = call->reason;
    wire_text(wire, &call->id, 1, CALL_ID_BYTES_MAX);
    wire_choice(wire, &state, CALL_ENDED + 1);
    wire_choice(wire, &reason, CALL_REASON_COUNT);
    pass_device(wire, &call->caller);
    pass_device(wire, &call->callee);
    wire_bool(wire, &call->unheard);
    wire_signed(wire, &call->started_at_ms);
    wire_signed(wire, &call->answered_at_ms);
    wire_signed(wire, &call->ended_at_ms);
    if (wire->out)
        return;
    call->state = state;
    call->reason = reason;
}

void aggregate_pass_call(struct wire *wire, union aggregate_outcome *outcome)
{
    wire_choice(wire, &outcome->call.result, CALL_UNKNOWN + 1);
    wire_bool(wire, &outcome->call.has_call);
    if (outcome->call.has_call)
        pass_call(wire, &outcome->call.call);
}

void aggregate_pass_calls(struct wire *wire, union aggregate_outcome *outcome)
{
    AGGREGATE_PASS_LIST(wire, outcome->calls.items, outcome->calls.count, CALL_REAP_MAX, pass_call);
}

/* ---- budgets ---- */

void aggregate_pass_claim(struct wire *wire, union aggregate_arguments *arguments)
{
    struct budget_claim *claim = &arguments->claim;
    unsigned budget = claim->budget;
    wire_choice(wire, &budget, BUDGET_CLASS_COUNT);
    aggregate_pass_user(wire, &claim->user_id);
    wire_signed(wire, &claim->rate.interval_us);
    wire_signed(wire, &claim->rate.full_us);
    wire_signed(wire, &claim->cost_us);
    claim->budget = budget;
}

void aggregate_pass_budget(struct wire *wire, union aggregate_outcome *outcome)
{
    aggregate_pass_status(wire, &outcome->status);
    wire_bool(wire, &outcome->budget.outcome.granted);
    wire_signed(wire, &outcome->budget.outcome.retry_after_ms);
}

/* ---- parked sessions ---- */

static void pass_event(struct wire *wire, void *item)
{
    struct recovery_event *event = item;
    wire_number(wire, &event->offset, UINT64_MAX);
    wire_number(wire, &event->id, UINT64_MAX);
    wire_text(wire, &event->frames, 0, AGGREGATE_EVENT_BYTES_MAX);
}

static void pass_session(struct wire *wire, struct parked_session *session)
{
    aggregate_pass_user(wire, &session->user_id);
    wire_text(wire, &session->pid, 0, AGGREGATE_PID_BYTES_MAX);
    wire_text(wire, &session->sid, 0, AGGREGATE_PID_BYTES_MAX);
    wire_number(wire, &session->floor, UINT64_MAX);
    wire_number(wire, &session->ceiling, UINT64_MAX);
    AGGREGATE_PASS_LIST(wire, session->events, session->event_count, RECOVERY_EVENTS_MAX,
                        pass_event);
    wire_ids(wire, &session->topics, &session->topic_count, RECOVERY_TOPICS_MAX,
             AGGREGATE_TOPIC_BYTES_MAX);
}

void aggregate_pass_park(struct wire *wire, union aggregate_arguments *arguments)
{
    pass_session(wire, &arguments->park);
}

void aggregate_pass_append(struct wire *wire, union aggregate_arguments *arguments)
{
    struct aggregate_ids *users = &arguments->append.users;
    wire_ids(wire, &users->items, &users->count, AGGREGATE_USERS_MAX, USER_ID_BYTES_MAX);
    pass_event(wire, &arguments->append.event);
}

void aggregate_pass_take(struct wire *wire, union aggregate_arguments *arguments)
{
    aggregate_pass_user(wire, &arguments->take.user_id);
    wire_text(wire, &arguments->take.pid, 0, AGGREGATE_PID_BYTES_MAX);
    wire_number(wire, &arguments->take.offset, UINT64_MAX);
    wire_signed(wire, &arguments->take.missed_ms);
}

void aggregate_pass_taken(struct wire *wire, union aggregate_outcome *outcome)
{
    wire_bool(wire, &outcome->taken.is_there);
    if (outcome->taken.is_there)
        pass_session(wire, &outcome->taken.session);
}
