#include "ledger/ledger_event_derive.h"

#include "text/json.h"
#include "text/time_text.h"

static bool is_event_wanted(const struct ledger_request *request, enum ledger_event_type type)
{
    for (size_t i = 0; i < request->input.queue_count; i++)
        if (request->input.queues[i].types & (1u << type))
            return true;
    return false;
}

/* ---- data ---- */

static void write_event_time(struct buffer *out, struct slice key, int64_t wall_ms)
{
    char text[TIME_TEXT_LEN];
    time_text_write(text, wall_ms);
    json_write_key_string(out, key, (struct slice){text, sizeof(text)});
}

static void write_event_ids(struct buffer *out, struct slice key, const struct slice *ids,
                            size_t count)
{
    json_write_key(out, key);
    json_write_array(out);
    for (size_t i = 0; i < count && i < LEDGER_EVENT_MEMBERS_MAX; i++)
        json_write_string(out, ids[i]);
    json_write_array_end(out);
}

static void write_event_actor(struct buffer *out, struct slice key, struct slice user)
{
    json_write_key(out, key);
    if (slice_equal(user, LEDGER_APPLICATION))
        json_write_null(out);
    else
        json_write_string(out, user);
}

static void write_message_event(struct buffer *out, const struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    const struct ledger_append_outcome *outcome = &request->outcome.append;
    json_write_key_string(out, SLICE("chat_id"), input->chat);
    json_write_key_string(out, SLICE("message_id"), outcome->message_id);
    json_write_key_int(out, SLICE("sequence"), (int64_t)outcome->sequence);
    write_event_actor(out, SLICE("sender_id"), input->user);
    write_event_time(out, SLICE("sent_at"), outcome->sent_at_ms);
}

static void write_contact_event(struct buffer *out, const struct ledger_contact_request *contact,
                                struct slice actor)
{
    if (contact->id.len)
        json_write_key_string(out, SLICE("request_id"), contact->id);
    json_write_key_string(out, SLICE("user_id"), actor);
    json_write_key_string(out, SLICE("from"), contact->from);
    json_write_key_string(out, SLICE("to"), contact->to);
}

static void write_chat_event(struct buffer *out, const struct ledger_chat *chat)
{
    bool is_direct = chat->kind == LEDGER_CHAT_DIRECT;
    json_write_key_string(out, SLICE("chat_id"), chat->id);
    json_write_key_string(out, SLICE("kind"), is_direct ? SLICE("direct") : SLICE("group"));
    json_write_key_string(out, SLICE("creator_id"), chat->creator);
    write_event_ids(out, SLICE("members"), chat->members, chat->member_count);
    json_write_key_int(out, SLICE("member_count"), (int64_t)chat->member_count);
}

static void write_members_event(struct buffer *out, const struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    bool adds = request->operation == LEDGER_CHAT_MEMBER_ADD;
    json_write_key_string(out, SLICE("chat_id"), input->chat);
    write_event_actor(out, SLICE("user_id"), input->user);
    write_event_ids(out, SLICE("added"), &input->other, adds);
    write_event_ids(out, SLICE("removed"), &input->other, !adds);
}

static void write_call_event_data(struct buffer *out, const struct ledger_call *call)
{
    json_write_key_string(out, SLICE("call_id"), call->id);
    json_write_key_string(out, SLICE("from"), call->caller);
    json_write_key_string(out, SLICE("to"), call->callee);
    write_event_time(out, SLICE("started_at"), call->started_at_ms);
    if (call->answered_at_ms)
        write_event_time(out, SLICE("answered_at"), call->answered_at_ms);
    if (!call->ended_at_ms)
        return;
    write_event_time(out, SLICE("ended_at"), call->ended_at_ms);
    json_write_key_string(out, SLICE("reason"), call->reason);
}

/* ---- one event ---- */

/* Collects the events of a request. */
struct event_derivation {
    struct ledger_request *request;
    struct ledger_event *events;
    size_t count;
    struct buffer data; /* of the event that is being written */
};

/* Begins an event. Returns false when no queue wants it. */
static bool begin_event(struct event_derivation *derivation, enum ledger_event_type type,
                        struct slice subject)
{
    if (!is_event_wanted(derivation->request, type))
        return false;
    derivation->events[derivation->count] = (struct ledger_event){
        .type = type, .subject = subject, .time_ms = derivation->request->wall_ms};
    buffer_clear(&derivation->data);
    json_write_object(&derivation->data);
    return true;
}

static void end_event(struct event_derivation *derivation)
{
    struct ledger_request *request = derivation->request;
    json_write_object_end(&derivation->data);
    if (derivation->data.failed)
        request->exhausted = true;
    else
        derivation->events[derivation->count++].data =
            ledger_request_copy(request, buffer_slice(&derivation->data));
}

/* ---- per operation ---- */

static void derive_message_events(struct event_derivation *derivation)
{
    static const enum ledger_event_type types[] = {LEDGER_EVENT_MESSAGE_CREATED,
                                                   LEDGER_EVENT_MESSAGE_UNDELIVERED};
    const struct ledger_request *request = derivation->request;
    if (request->outcome.append.duplicate)
        return;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (begin_event(derivation, types[i], request->input.chat)) {
            derivation->events[derivation->count].sequence = request->outcome.append.sequence;
            write_message_event(&derivation->data, request);
            end_event(derivation);
        }
}

/* Whatever two users do to each other is in order: the smaller id is the subject. */
static void derive_contact_event(struct event_derivation *derivation, enum ledger_event_type type,
                                 const struct ledger_contact_request *contact, struct slice actor)
{
    struct slice subject =
        id_list_compare(contact->from, contact->to) < 0 ? contact->from : contact->to;
    if (!begin_event(derivation, type, subject))
        return;
    write_contact_event(&derivation->data, contact, actor);
    end_event(derivation);
}

/* A contact request that its receiver never sees (a block) is no event. */
static void derive_contact_request_event(struct event_derivation *derivation)
{
    const struct ledger_contact_outcome *outcome = &derivation->request->outcome.contact;
    struct slice actor = derivation->request->input.user;
    if (outcome->result == LEDGER_CONTACT_ACCEPTED)
        derive_contact_event(derivation, LEDGER_EVENT_CONTACT_ACCEPTED, &outcome->request, actor);
    else if ((outcome->result == LEDGER_CONTACT_REQUESTED ||
              outcome->result == LEDGER_CONTACT_PENDING) &&
             outcome->tell_other_side)
        derive_contact_event(derivation, LEDGER_EVENT_CONTACT_REQUESTED, &outcome->request, actor);
}

static void derive_removed_event(struct event_derivation *derivation, bool removed)
{
    const struct ledger_request_input *input = &derivation->request->input;
    struct ledger_contact_request sides = {.from = input->user, .to = input->other};
    if (removed)
        derive_contact_event(derivation, LEDGER_EVENT_CONTACT_REMOVED, &sides, input->user);
}

static void derive_chat_event(struct event_derivation *derivation)
{
    const struct ledger_chat_outcome *outcome = &derivation->request->outcome.chat;
    if (!outcome->created ||
        !begin_event(derivation, LEDGER_EVENT_CHAT_CREATED, derivation->request->input.chat))
        return;
    write_chat_event(&derivation->data, &outcome->chat);
    end_event(derivation);
}

static void derive_members_event(struct event_derivation *derivation, bool changed)
{
    const struct ledger_request *request = derivation->request;
    if (!changed ||
        !begin_event(derivation, LEDGER_EVENT_CHAT_MEMBERS_CHANGED, request->input.chat))
        return;
    write_members_event(&derivation->data, request);
    end_event(derivation);
}

static void derive_call_event(struct event_derivation *derivation, enum ledger_event_type type)
{
    const struct ledger_call *call = derivation->request->input.call;
    if (!begin_event(derivation, type, call->caller))
        return;
    write_call_event_data(&derivation->data, call);
    end_event(derivation);
}

/* A call that was neither answered nor refused was missed by its callee. */
static void derive_history_events(struct event_derivation *derivation)
{
    const struct ledger_call *call = derivation->request->input.call;
    if (!derivation->request->outcome.change.changed)
        return;
    derive_call_event(derivation, LEDGER_EVENT_CALL_ENDED);
    if (call->answered_at_ms == 0 && !slice_is(call->reason, "rejected"))
        derive_call_event(derivation, LEDGER_EVENT_CALL_MISSED);
}

size_t ledger_event_derive(struct ledger_request *request,
                           struct ledger_event events[LEDGER_EVENTS_OF_REQUEST_MAX])
{
    struct event_derivation derivation = {
        .request = request, .events = events, .data = BUFFER_BOUNDED(LEDGER_EVENT_DATA_BYTES_MAX)};
    if (request->input.queue_count == 0 || request->unfinished)
        return 0;
    switch (request->operation) {
    case LEDGER_MESSAGE_APPEND:
        derive_message_events(&derivation);
        break;
    case LEDGER_CONTACT_REQUEST_CREATE:
    case LEDGER_CONTACT_REQUEST_ACCEPT:
        derive_contact_request_event(&derivation);
        break;
    case LEDGER_CONTACT_REMOVE:
        derive_removed_event(&derivation, request->outcome.change.changed);
        break;
    case LEDGER_BLOCK_PUT:
        derive_removed_event(&derivation, request->outcome.block.contact_removed);
        break;
    case LEDGER_CHAT_CREATE:
    case LEDGER_CHAT_OPEN_DIRECT:
        derive_chat_event(&derivation);
        break;
    case LEDGER_CHAT_MEMBER_ADD:
        derive_members_event(&derivation, request->outcome.change.changed);
        break;
    case LEDGER_CHAT_MEMBER_REMOVE:
        derive_members_event(&derivation, request->outcome.member.changed);
        break;
    case LEDGER_CALL_APPEND:
        derive_history_events(&derivation);
        break;
    case LEDGER_CALL_EVENT:
        derive_call_event(&derivation, (enum ledger_event_type)request->input.event_type);
        break;
    default:
        break;
    }
    buffer_free(&derivation.data);
    return derivation.count;
}
