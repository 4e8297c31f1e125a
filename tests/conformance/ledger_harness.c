#include "conformance/ledger_harness.h"

#include "ledger/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* ---- the worker ---- */

static void post(void *arg, struct ledger_request *done)
{
    struct harness *harness = arg;
    pthread_mutex_lock(&harness->mutex);
    struct ledger_request **end = &harness->posted;
    while (*end)
        end = &(*end)->next;
    *end = done;
    pthread_cond_signal(&harness->arrived);
    pthread_mutex_unlock(&harness->mutex);
}

void harness_init(struct harness *harness, struct ledger *ledger)
{
    *harness = (struct harness){.clock = {.now_ms = 1000, .wall_ms = 5000}};
    pthread_mutex_init(&harness->mutex, NULL);
    pthread_cond_init(&harness->arrived, NULL);
    ledger_client_init(&harness->client, ledger, &harness->clock, post, harness);
}

void harness_free(struct harness *harness)
{
    harness_turn(harness, false);
    assert_int_equal(harness->client.outstanding, 0);
    buffer_free(&harness->line);
    pthread_cond_destroy(&harness->arrived);
    pthread_mutex_destroy(&harness->mutex);
}

static struct ledger_request *take_posted(struct harness *harness, bool wait)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += HARNESS_PATIENCE_SECONDS;
    pthread_mutex_lock(&harness->mutex);
    while (wait && !harness->posted)
        if (pthread_cond_timedwait(&harness->arrived, &harness->mutex, &limit) != 0)
            break;
    struct ledger_request *chain = harness->posted;
    harness->posted = NULL;
    pthread_mutex_unlock(&harness->mutex);
    if (wait && !chain)
        fail_msg("the ledger does not answer");
    return chain;
}

void harness_turn(struct harness *harness, bool wait)
{
    ledger_complete(take_posted(harness, wait));
}

void harness_await(struct harness *harness, unsigned count)
{
    while (harness->answers < count)
        harness_turn(harness, true);
    assert_int_equal(harness->answers, count);
}

void harness_settle(struct harness *harness)
{
    while (harness->client.outstanding > 0)
        harness_turn(harness, true);
}

/* ---- writing answers down ---- */

static bool begin(struct harness *harness, enum ledger_status status)
{
    harness->answers++;
    harness->statuses[status]++;
    buffer_clear(&harness->line);
    buffer_append_text(&harness->line, ledger_status_name(status));
    return status == LEDGER_OK;
}

static const char *line(struct harness *harness)
{
    harness_await(harness, harness->answers + 1);
    buffer_append_byte(&harness->line, '\0');
    assert_false(harness->line.failed);
    return harness->line.data;
}

static void add(struct harness *harness, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct harness *harness, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    buffer_append(&harness->line, text, (size_t)len);
}

void harness_count_change(void *arg, const struct ledger_change_outcome *outcome)
{
    begin(arg, outcome->status);
}

void harness_count_append(void *arg, const struct ledger_append_outcome *outcome)
{
    begin(arg, outcome->status);
}

static void write_change(void *arg, const struct ledger_change_outcome *outcome)
{
    if (begin(arg, outcome->status) && outcome->changed)
        add(arg, " changed");
}

static void write_ids(void *arg, const struct ledger_ids_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        add(arg, " %.*s", SLICE_FORMAT(outcome->ids[i]));
}

static const char *const visibilities[] = {"contacts", "everyone", "nobody"};

static void write_settings(void *arg, const struct ledger_settings_outcome *outcome)
{
    if (begin(arg, outcome->status))
        add(arg, " %s %s was %s %s", visibilities[outcome->settings.presence],
            visibilities[outcome->settings.last_seen], visibilities[outcome->previous.presence],
            visibilities[outcome->previous.last_seen]);
}

static void add_list(void *arg, const char *name, struct ledger_id_list list)
{
    add(arg, " %s:", name);
    for (size_t i = 0; i < list.count; i++)
        add(arg, "%s%.*s", i ? "," : "", SLICE_FORMAT(list.ids[i]));
}

static void write_circle(void *arg, const struct ledger_circle_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    add(arg, " %s %s", visibilities[outcome->settings.presence],
        visibilities[outcome->settings.last_seen]);
    add_list(arg, "contacts", outcome->contacts);
    add_list(arg, "blocked", outcome->blocked);
    add_list(arg, "chats", outcome->chats);
}

static void write_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_profile *profile = &outcome->profiles[i];
        add(arg, " %.*s/%s/%s%s%s%s@%lldv%llu", SLICE_FORMAT(profile->user),
            visibilities[profile->settings.presence], visibilities[profile->settings.last_seen],
            profile->are_contacts ? "/contact" : "", profile->blocked_by_viewer ? "/blocks" : "",
            profile->blocked_by_target ? "/blocked" : "", (long long)profile->last_seen_ms,
            (unsigned long long)profile->presence_version);
    }
}

static void write_contact(void *arg, const struct ledger_contact_outcome *outcome)
{
    static const char *const results[] = {"requested", "pending",  "accepted",
                                          "already",   "declined", "withdrawn"};
    if (!begin(arg, outcome->status))
        return;
    const struct ledger_contact_request *request = &outcome->request;
    add(arg, " %s", results[outcome->result]);
    if (request->id.len)
        add(arg, " %.*s", SLICE_FORMAT(request->id));
    add(arg, " %.*s>%.*s%s", SLICE_FORMAT(request->from), SLICE_FORMAT(request->to),
        outcome->tell_other_side ? " tell" : "");
}

static void write_requests(void *arg, const struct ledger_contact_requests_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_contact_request *request = &outcome->requests[i];
        add(arg, " %.*s:%.*s>%.*s", SLICE_FORMAT(request->id), SLICE_FORMAT(request->from),
            SLICE_FORMAT(request->to));
    }
    add(arg, "%s", outcome->has_more ? " more" : "");
}

static void write_block(void *arg, const struct ledger_block_outcome *outcome)
{
    if (begin(arg, outcome->status))
        add(arg, "%s%s", outcome->changed ? " changed" : "",
            outcome->contact_removed ? " parted" : "");
}

static void add_chat(struct harness *harness, const struct ledger_chat *chat)
{
    add(harness, " %.*s by %.*s (%zu", SLICE_FORMAT(chat->id), SLICE_FORMAT(chat->creator),
        chat->member_count);
    for (size_t i = 0; chat->members && i < chat->member_count; i++)
        add(harness, " %.*s", SLICE_FORMAT(chat->members[i]));
    add(harness, ") %llu/%llu", (unsigned long long)chat->unread,
        (unsigned long long)chat->latest_sequence);
}

static void write_chat(void *arg, const struct ledger_chat_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    add(arg, "%s", outcome->created ? " created" : "");
    add_chat(arg, &outcome->chat);
}

static void write_chats(void *arg, const struct ledger_chats_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        add_chat(arg, &outcome->chats[i]);
    add(arg, "%s", outcome->has_more ? " more" : "");
}

static void write_calls(void *arg, const struct ledger_calls_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_call *call = &outcome->calls[i];
        add(arg, " %.*s:%.*s>%.*s:%.*s:%lld", SLICE_FORMAT(call->id), SLICE_FORMAT(call->caller),
            SLICE_FORMAT(call->callee), SLICE_FORMAT(call->reason), (long long)call->ended_at_ms);
    }
}

static void write_append(void *arg, const struct ledger_append_outcome *outcome)
{
    if (begin(arg, outcome->status))
        add(arg, " %llu %.*s%s%s%s", (unsigned long long)outcome->sequence,
            SLICE_FORMAT(outcome->message_id), outcome->duplicate ? " duplicate" : "",
            outcome->body_differs ? " differs" : "", outcome->published ? " published" : "");
}

static void write_messages(void *arg, const struct ledger_messages_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_message *message = &outcome->messages[i];
        add(arg, " %.*s#%llu:%.*s:%.*s", SLICE_FORMAT(message->chat),
            (unsigned long long)message->sequence, SLICE_FORMAT(message->sender),
            SLICE_FORMAT(message->body));
    }
    add(arg, "%s /%llu", outcome->has_more ? " more" : "",
        (unsigned long long)outcome->latest_sequence);
}

static void write_dead_letters(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    if (!begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        add(arg, " %.*s#%llu:%.*s", SLICE_FORMAT(outcome->letters[i].chat),
            (unsigned long long)outcome->letters[i].sequence,
            SLICE_FORMAT(outcome->letters[i].reason));
}

static void write_repair(void *arg, const struct ledger_repair_outcome *outcome)
{
    if (begin(arg, outcome->status))
        add(arg, "%s%s %llu/%llu", outcome->needed ? " needed" : "",
            outcome->counter_missing ? " missing" : "", (unsigned long long)outcome->counter,
            (unsigned long long)outcome->highest_sequence);
}

/* ---- asking: users and contacts ---- */

const char *harness_settings(struct harness *harness, const char *user)
{
    ledger_settings_get(&harness->client, slice_of(user), write_settings, harness);
    return line(harness);
}

static const enum ledger_visibility *visibility(const char *name, enum ledger_visibility *value)
{
    for (unsigned i = 0; name && i < 3; i++)
        if (strcmp(visibilities[i], name) == 0)
            *value = (enum ledger_visibility)i;
    return name ? value : NULL;
}

const char *harness_set(struct harness *harness, const char *user, const char *presence,
                        const char *last_seen)
{
    enum ledger_visibility values[2] = {0};
    ledger_settings_put(&harness->client, slice_of(user), visibility(presence, &values[0]),
                        visibility(last_seen, &values[1]), write_settings, harness);
    return line(harness);
}

static size_t split(const char *list, struct slice *ids, size_t count_max)
{
    size_t count = 0;
    struct slice rest = slice_of(list);
    while (rest.len > 0) {
        assert_true(count < count_max);
        rest = slice_split(rest, ',', &ids[count++]);
    }
    return count;
}

const char *harness_profiles(struct harness *harness, const char *viewer, const char *targets)
{
    struct slice ids[16];
    size_t count = split(targets, ids, 16);
    ledger_profiles(&harness->client, slice_of(viewer), ids, count, write_profiles, harness);
    return line(harness);
}

const char *harness_seen(struct harness *harness, const char *user, int64_t last_seen_ms,
                         uint64_t version)
{
    struct ledger_last_seen seen = {slice_of(user), last_seen_ms, version};
    ledger_last_seen_put(&harness->client, &seen, 1, write_change, harness);
    return line(harness);
}

const char *harness_ask(struct harness *harness, const char *id, const char *from, const char *to)
{
    ledger_contact_request_create(&harness->client, slice_of(id), slice_of(from), slice_of(to),
                                  write_contact, harness);
    return line(harness);
}

const char *harness_accept(struct harness *harness, const char *user, const char *id)
{
    ledger_contact_request_accept(&harness->client, slice_of(user), slice_of(id), write_contact,
                                  harness);
    return line(harness);
}

const char *harness_decline(struct harness *harness, const char *user, const char *id)
{
    ledger_contact_request_decline(&harness->client, slice_of(user), slice_of(id), write_contact,
                                   harness);
    return line(harness);
}

const char *harness_withdraw(struct harness *harness, const char *user, const char *id)
{
    ledger_contact_request_withdraw(&harness->client, slice_of(user), slice_of(id), write_contact,
                                    harness);
    return line(harness);
}

const char *harness_requests(struct harness *harness, const char *user,
                             enum ledger_direction direction, const char *after, uint32_t limit)
{
    ledger_contact_requests_list(&harness->client, slice_of(user), direction, slice_of(after),
                                 limit, write_requests, harness);
    return line(harness);
}

const char *harness_contacts(struct harness *harness, const char *user)
{
    ledger_contacts_list(&harness->client, slice_of(user), write_ids, harness);
    return line(harness);
}

const char *harness_circle(struct harness *harness, const char *user, uint32_t chats_max)
{
    ledger_circle(&harness->client, slice_of(user), chats_max, write_circle, harness);
    return line(harness);
}

const char *harness_remove(struct harness *harness, const char *user, const char *peer)
{
    ledger_contact_remove(&harness->client, slice_of(user), slice_of(peer), write_change, harness);
    return line(harness);
}

const char *harness_block(struct harness *harness, const char *user, const char *peer)
{
    ledger_block_put(&harness->client, slice_of(user), slice_of(peer), write_block, harness);
    return line(harness);
}

const char *harness_unblock(struct harness *harness, const char *user, const char *peer)
{
    ledger_block_delete(&harness->client, slice_of(user), slice_of(peer), write_change, harness);
    return line(harness);
}

const char *harness_blocks(struct harness *harness, const char *user)
{
    ledger_blocks_list(&harness->client, slice_of(user), write_ids, harness);
    return line(harness);
}

/* ---- asking: chats and calls ---- */

const char *harness_chat_create(struct harness *harness, const char *chat, const char *creator,
                                const char *members)
{
    struct slice ids[16];
    size_t count = split(members, ids, 16);
    ledger_chat_create(&harness->client, slice_of(chat), slice_of(creator), ids, count, write_chat,
                       harness);
    return line(harness);
}

const char *harness_chat(struct harness *harness, const char *chat, const char *viewer)
{
    ledger_chat_get(&harness->client, slice_of(chat), slice_of(viewer), write_chat, harness);
    return line(harness);
}

const char *harness_chats(struct harness *harness, const char *user, const char *after,
                          uint32_t limit, bool with_members)
{
    ledger_chats_list(&harness->client, slice_of(user), slice_of(after), limit, with_members,
                      write_chats, harness);
    return line(harness);
}

const char *harness_member(struct harness *harness, const char *chat, const char *user)
{
    ledger_chat_member_check(&harness->client, slice_of(chat), slice_of(user), write_change,
                             harness);
    return line(harness);
}

const char *harness_member_add(struct harness *harness, const char *chat, const char *actor,
                               const char *user)
{
    ledger_chat_member_add(&harness->client, slice_of(chat), slice_of(actor), slice_of(user),
                           write_change, harness);
    return line(harness);
}

const char *harness_member_remove(struct harness *harness, const char *chat, const char *actor,
                                  const char *user)
{
    ledger_chat_member_remove(&harness->client, slice_of(chat), slice_of(actor), slice_of(user),
                              write_change, harness);
    return line(harness);
}

const char *harness_call(struct harness *harness, const char *id, const char *caller,
                         const char *callee, int64_t ended_at_ms)
{
    struct ledger_call call = {.id = slice_of(id),
                               .caller = slice_of(caller),
                               .callee = slice_of(callee),
                               .reason = SLICE("hangup"),
                               .started_at_ms = ended_at_ms - 10,
                               .ended_at_ms = ended_at_ms};
    ledger_call_append(&harness->client, &call, write_change, harness);
    return line(harness);
}

const char *harness_calls(struct harness *harness, const char *user, uint32_t limit)
{
    ledger_calls_list(&harness->client, slice_of(user), limit, write_calls, harness);
    return line(harness);
}

/* ---- asking: messages ---- */

const char *harness_send(struct harness *harness, const char *chat, const char *sender,
                         const char *client_id, const char *body)
{
    char message_id[64];
    int len = snprintf(message_id, sizeof(message_id), "m-%s", client_id);
    ledger_message_append(&harness->client, slice_of(chat), slice_of(sender), slice_of(client_id),
                          (struct slice){message_id, (size_t)len}, slice_of(body), write_append,
                          harness);
    return line(harness);
}

const char *harness_after(struct harness *harness, const char *chat, const char *viewer,
                          uint64_t sequence, uint32_t limit)
{
    ledger_messages_after(&harness->client, slice_of(chat), slice_of(viewer), sequence, limit,
                          write_messages, harness);
    return line(harness);
}

const char *harness_before(struct harness *harness, const char *chat, const char *viewer,
                           uint64_t sequence, uint32_t limit)
{
    ledger_messages_before(&harness->client, slice_of(chat), slice_of(viewer), sequence, limit,
                           write_messages, harness);
    return line(harness);
}

const char *harness_cursor(struct harness *harness, const char *chat, const char *user,
                           const char *device, uint64_t sequence)
{
    ledger_cursor_put(&harness->client, slice_of(chat), slice_of(user), slice_of(device), sequence,
                      write_change, harness);
    return line(harness);
}

const char *harness_outbox(struct harness *harness, uint32_t limit)
{
    ledger_outbox_list(&harness->client, limit, write_messages, harness);
    return line(harness);
}

const char *harness_published(struct harness *harness, const char *chat, uint64_t sequence)
{
    struct ledger_position position = {slice_of(chat), sequence};
    ledger_outbox_remove(&harness->client, &position, 1, write_change, harness);
    return line(harness);
}

const char *harness_bury(struct harness *harness, const char *chat, uint64_t sequence,
                         const char *reason)
{
    ledger_dead_letter_put(&harness->client, slice_of(chat), sequence, slice_of(reason),
                           write_change, harness);
    return line(harness);
}

const char *harness_buried(struct harness *harness)
{
    ledger_dead_letters_list(&harness->client, 0, write_dead_letters, harness);
    return line(harness);
}

const char *harness_replay(struct harness *harness, const char *chat, uint64_t sequence)
{
    ledger_dead_letter_replay(&harness->client, slice_of(chat), sequence, write_change, harness);
    return line(harness);
}

const char *harness_repair(struct harness *harness, const char *chat, bool apply)
{
    ledger_chat_repair(&harness->client, slice_of(chat), apply, write_repair, harness);
    return line(harness);
}
