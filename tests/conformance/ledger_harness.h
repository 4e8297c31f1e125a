/*
 * A worker for tests of the ledger. Its mailbox is a list under a mutex; its clock stands still unless the
 * test moves it. Each function below starts one operation of the port, waits for the answer and returns it as
 * a line of text, so that a test has an operation and its expected answer in one line:
 *
 *     expect(harness_request_contact(harness, "r1", "alice", "bob"), "ok requested r1 alice>bob tell");
 *
 * A line starts with the status; nothing follows a status other than "ok". It lasts until the next
 * operation.
 */
#ifndef ROLLCALL_TESTS_LEDGER_HARNESS_H
#define ROLLCALL_TESTS_LEDGER_HARNESS_H

#include "base/buffer.h"
#include "ledger/ledger_erasure.h"
#include "ledger/ledger_events.h"
#include "ledger/ledger_keys.h"
#include "ledger/ledger_messages.h"
#include "ledger/ledger_relations.h"
#include "ledger/ledger_revocations.h"

#include <pthread.h>

enum { HARNESS_PATIENCE_SECONDS = 60, HARNESS_EVENTS_MAX = 64 };

struct harness {
    struct ledger_client client;
    struct clock clock;
    uint64_t last_position; /* see harness_revocations() */
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct ledger_request *posted; /* one chain */
    struct buffer line;
    char events[HARNESS_EVENTS_MAX][LEDGER_EVENT_POSITION_BYTES_MAX + 1]; /* listed last */
    size_t event_count;
    bool shows_data;      /* of the events that are listed */
    bool shows_bodies;    /* and the sequences of their messages */
    uint64_t queue_count; /* see harness_event_queue() */
    uint64_t queue_dropped;
    unsigned answers;
    unsigned statuses[LEDGER_STATUS_COUNT];
};

void harness_init(struct harness *harness, struct ledger *ledger);

/* The ledger must be closed or idle. */
void harness_free(struct harness *harness);

/* Completes the posted requests; with `wait`, waits for one first. */
void harness_turn(struct harness *harness, bool wait);

/* Waits until `answers` has reached `count`. */
void harness_await(struct harness *harness, unsigned count);

/* Waits until the backend has returned all requests of this client. */
void harness_settle(struct harness *harness);

/* Completions that only count; the argument is the harness. */
void harness_count_change(void *arg, const struct ledger_change_outcome *outcome);
void harness_count_cursor(void *arg, const struct ledger_cursor_outcome *outcome);
void harness_count_append(void *arg, const struct ledger_append_outcome *outcome);

/* Lists are separated by commas; an empty list is "". */
const char *harness_settings(struct harness *harness, const char *user);
const char *harness_set(struct harness *harness, const char *user, const char *presence,
                        const char *last_seen);
const char *harness_consent(struct harness *harness, const char *user, const char *group_adds,
                            const char *reads);
const char *harness_appear(struct harness *harness, const char *user, const char *display_name,
                           const char *avatar_url);
const char *harness_appearances(struct harness *harness, const char *users);
const char *harness_profiles(struct harness *harness, const char *viewer, const char *targets);
const char *harness_seen(struct harness *harness, const char *user, int64_t last_seen_ms,
                         uint64_t version);

const char *harness_request_contact(struct harness *harness, const char *id, const char *from,
                                    const char *to);
const char *harness_accept(struct harness *harness, const char *user, const char *id);
const char *harness_decline(struct harness *harness, const char *user, const char *id);
const char *harness_withdraw(struct harness *harness, const char *user, const char *id);
const char *harness_contact_requests(struct harness *harness, const char *user,
                                     enum ledger_direction direction, const char *after,
                                     uint32_t limit);
const char *harness_contacts(struct harness *harness, const char *user);
const char *harness_graph(struct harness *harness, const char *user, uint32_t chats_max);
const char *harness_remove(struct harness *harness, const char *user, const char *other);
const char *harness_block(struct harness *harness, const char *user, const char *other);
const char *harness_unblock(struct harness *harness, const char *user, const char *other);
const char *harness_blocks(struct harness *harness, const char *user);

/* Changes pairs, "alice,bob,alice,carol"; each result is a status, "changed" and "removed" where they hold. */
const char *harness_relations(struct harness *harness, enum ledger_relation_change change,
                              const char *pairs);

const char *harness_chat_create(struct harness *harness, const char *chat, const char *creator,
                                const char *members);
const char *harness_chat(struct harness *harness, const char *chat, const char *reader);
const char *harness_direct(struct harness *harness, const char *chat, const char *user,
                           const char *other);

/* Returns the admins and who may add members, then the profiles. */
const char *harness_chat_roles(struct harness *harness, const char *chat, const char *reader);
const char *harness_chat_change(struct harness *harness, const char *chat, const char *actor,
                                bool members_can_add);

/* Lists after a chat ("": from the start) and its activity. */
const char *harness_chats(struct harness *harness, const char *user, const char *after,
                          int64_t activity_ms, uint32_t limit, bool with_members);
const char *harness_member(struct harness *harness, const char *chat, const char *user);
/* By the application. */
const char *harness_chat_make(struct harness *harness, const char *chat, const char *creator,
                              const char *members);
const char *harness_message_delete(struct harness *harness, const char *chat, uint64_t sequence);
const char *harness_member_add(struct harness *harness, const char *chat, const char *actor,
                               const char *user);
const char *harness_member_remove(struct harness *harness, const char *chat, const char *actor,
                                  const char *user);

const char *harness_admin(struct harness *harness, const char *chat, const char *actor,
                          const char *user, bool is_admin);

const char *harness_call(struct harness *harness, const char *id, const char *caller,
                         const char *callee, int64_t ended_at_ms);
const char *harness_calls(struct harness *harness, const char *user, uint32_t limit);

const char *harness_send(struct harness *harness, const char *chat, const char *sender,
                         const char *client_id, const char *body);
const char *harness_after(struct harness *harness, const char *chat, const char *reader,
                          uint64_t sequence, uint32_t limit);
const char *harness_before(struct harness *harness, const char *chat, const char *reader,
                           uint64_t sequence, uint32_t limit);
const char *harness_cursor(struct harness *harness, const char *chat, const char *user,
                           const char *device, uint64_t sequence);
const char *harness_outbox(struct harness *harness, uint32_t limit);
const char *harness_outbox_remove(struct harness *harness, const char *chat, uint64_t sequence,
                                  int64_t sent_at_ms);
const char *harness_dead_letter_put(struct harness *harness, const char *chat, uint64_t sequence,
                                    const char *reason);
/* Erases a slice of the user's messages in a chat; "changed": there may be more. */
const char *harness_erase(struct harness *harness, const char *chat, const char *user);
const char *harness_former_chats(struct harness *harness, const char *user, const char *after,
                                 uint32_t limit);
const char *harness_forget(struct harness *harness, const char *user);

/* Each revocation as user@second; `last_position` is that of the last one. */
const char *harness_revoke(struct harness *harness, const char *user);
const char *harness_revocations(struct harness *harness, uint64_t after, uint32_t limit);

const char *harness_key_put(struct harness *harness, const char *name, const char *hash,
                            const char *scope);
const char *harness_key_delete(struct harness *harness, const char *name);
const char *harness_key_used(struct harness *harness, const char *name);
/* Each key as name=hash(scope)created/used. */
const char *harness_keys(struct harness *harness);

const char *harness_dead_letters(struct harness *harness);
const char *harness_replay(struct harness *harness, const char *chat, uint64_t sequence);
/* Each event as type@time:subject, with its data if `shows_data` and #sequence:body if `shows_bodies`; dead letters with (queue reason). `first` and `count` choose
 * among those that were listed last. */
const char *harness_call_event(struct harness *harness, enum ledger_event_type type, const char *id,
                               const char *caller, const char *callee);
const char *harness_events(struct harness *harness, const char *queue, uint32_t limit);
const char *harness_events_remove(struct harness *harness, const char *queue, size_t first,
                                  size_t count);
const char *harness_events_bury(struct harness *harness, const char *queue, size_t first,
                                size_t count, const char *reason);
const char *harness_dead_events(struct harness *harness, const char *after_queue,
                                const char *after_position, uint32_t limit);
const char *harness_dead_events_replay(struct harness *harness, const char *queue, size_t first,
                                       size_t count);

/* The holder and the version of its lease; the counts are in the harness. */
const char *harness_event_queue(struct harness *harness, const char *queue);
const char *harness_event_lease(struct harness *harness, const char *queue, const char *holder,
                                uint64_t seen_version);

const char *harness_repair(struct harness *harness, const char *chat, bool apply);

#endif
