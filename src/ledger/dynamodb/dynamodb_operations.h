/*
 * The operations of the DynamoDB ledger: one file per subject, one function per operation of the port.
 *
 * An operation runs on a fiber: its reads and writes (dynamodb_read.h, dynamodb_write.h) wait for their answers. It fills in its
 * field of the request's outcome and returns the status; for any status but LEDGER_OK the caller clears the outcome.
 * An operation need not check for failures: they are sticky in the task, and the caller then answers UNAVAILABLE, or
 * TIMEOUT when the time was up, whatever the operation returned.
 *
 * What one operation writes is one transaction. What it decides on is read before, so the transaction's conditions repeat
 * whatever the decision rests on; when one no longer holds, the operation reads and decides again, at most
 * DYNAMODB_DECISIONS_MAX times.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_OPERATIONS_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_OPERATIONS_H

#include "ledger/dynamodb/client/dynamodb_read.h"
#include "ledger/dynamodb/client/dynamodb_write.h"

typedef enum ledger_status (*dynamodb_operation)(struct dynamodb_task *task);

/* Executes the task's request and completes its outcome, also when it fails. */
void dynamodb_operations_execute(struct dynamodb_task *task);

/* Completes the outcome of a request of this task: `status`, or what a failure of the task makes of it. */
void dynamodb_operations_complete(struct dynamodb_task *task, struct ledger_request *request,
                                  enum ledger_status status);

/* ---- dynamodb_blocks.c ---- */

enum ledger_status dynamodb_blocks_put(struct dynamodb_task *task);
enum ledger_status dynamodb_blocks_delete(struct dynamodb_task *task);
enum ledger_status dynamodb_blocks_list(struct dynamodb_task *task);

/* The first of the two blocks the second; fills in outcome.block. A dynamodb_relation_decision. */
struct dynamodb_relation;
enum ledger_status dynamodb_blocks_decide(struct ledger_request *request,
                                          struct dynamodb_relation *relation);

/* ---- dynamodb_calls.c ---- */

enum ledger_status dynamodb_calls_append(struct dynamodb_task *task);
enum ledger_status dynamodb_calls_list(struct dynamodb_task *task);

/* ---- dynamodb_chat_create.c ---- */

enum ledger_status dynamodb_chat_create_group(struct dynamodb_task *task);
enum ledger_status dynamodb_chat_create_direct(struct dynamodb_task *task);

/* ---- dynamodb_chat_members.c ---- */

enum ledger_status dynamodb_members_check(struct dynamodb_task *task);
enum ledger_status dynamodb_members_add(struct dynamodb_task *task);
enum ledger_status dynamodb_members_remove(struct dynamodb_task *task);

/* ---- dynamodb_chat_roles.c ---- */

enum ledger_status dynamodb_roles_admin_put(struct dynamodb_task *task);
enum ledger_status dynamodb_roles_admin_delete(struct dynamodb_task *task);
enum ledger_status dynamodb_roles_change_chat(struct dynamodb_task *task);

/* ---- dynamodb_chats.c ---- */

enum ledger_status dynamodb_chats_get(struct dynamodb_task *task);

/* ---- dynamodb_chats_list.c ---- */

enum ledger_status dynamodb_chats_list(struct dynamodb_task *task);

/* Returns the ids of the user's first chats, accepted ones before others, by activity among each; sorted by bytes. */
struct id_list dynamodb_chats_of_user(struct dynamodb_task *task, struct slice user,
                                      uint32_t chats_max);

/* ---- dynamodb_contacts.c ---- */

enum ledger_status dynamodb_contacts_request_create(struct dynamodb_task *task);
enum ledger_status dynamodb_contacts_request_accept(struct dynamodb_task *task);
enum ledger_status dynamodb_contacts_request_decline(struct dynamodb_task *task);
enum ledger_status dynamodb_contacts_request_withdraw(struct dynamodb_task *task);
enum ledger_status dynamodb_contacts_requests_list(struct dynamodb_task *task);
enum ledger_status dynamodb_contacts_list(struct dynamodb_task *task);
enum ledger_status dynamodb_contacts_remove(struct dynamodb_task *task);

/* Returns the ids behind `prefix` ("contact#") among the items of a user, sorted; `limit` 0: all. */
struct id_list dynamodb_contacts_read_ids(struct dynamodb_task *task, struct slice user,
                                          const char *prefix, uint32_t limit);

/* ---- dynamodb_erasure.c ---- */

enum ledger_status dynamodb_erasure_messages(struct dynamodb_task *task);
enum ledger_status dynamodb_erasure_forget(struct dynamodb_task *task);
enum ledger_status dynamodb_erasure_former_chats(struct dynamodb_task *task);

/* ---- dynamodb_cursors.c ---- */

enum ledger_status dynamodb_cursors_put(struct dynamodb_task *task);

/* ---- dynamodb_events.c ---- */

enum ledger_status dynamodb_events_call(struct dynamodb_task *task);
enum ledger_status dynamodb_events_list(struct dynamodb_task *task);
enum ledger_status dynamodb_events_remove(struct dynamodb_task *task);
enum ledger_status dynamodb_events_bury(struct dynamodb_task *task);
enum ledger_status dynamodb_events_list_dead(struct dynamodb_task *task);
enum ledger_status dynamodb_events_replay(struct dynamodb_task *task);
enum ledger_status dynamodb_events_queue_get(struct dynamodb_task *task);
enum ledger_status dynamodb_events_lease(struct dynamodb_task *task);

/* ---- dynamodb_graph.c ---- */

enum ledger_status dynamodb_users_graph(struct dynamodb_task *task);

/* ---- dynamodb_keys.c ---- */

enum ledger_status dynamodb_keys_put(struct dynamodb_task *task);
enum ledger_status dynamodb_keys_delete(struct dynamodb_task *task);
enum ledger_status dynamodb_keys_used(struct dynamodb_task *task);
enum ledger_status dynamodb_keys_list(struct dynamodb_task *task);

/* ---- dynamodb_relations.c ---- */

enum ledger_status dynamodb_relations_change(struct dynamodb_task *task);

/* ---- dynamodb_revocations.c ---- */

enum ledger_status dynamodb_revocations_put(struct dynamodb_task *task);
enum ledger_status dynamodb_revocations_list(struct dynamodb_task *task);

/* ---- dynamodb_users.c ---- */

enum ledger_status dynamodb_users_settings_get(struct dynamodb_task *task);
enum ledger_status dynamodb_users_settings_put(struct dynamodb_task *task);
enum ledger_status dynamodb_users_profiles(struct dynamodb_task *task);
enum ledger_status dynamodb_users_appearances(struct dynamodb_task *task);
enum ledger_status dynamodb_users_last_seen_put(struct dynamodb_task *task);
struct ledger_settings dynamodb_users_get_settings(struct dynamodb_task *task, struct slice user);

/* ---- dynamodb_messages.c; dynamodb_appends.h stores messages ---- */

enum ledger_status dynamodb_messages_delete(struct dynamodb_task *task);
enum ledger_status dynamodb_messages_after(struct dynamodb_task *task);
enum ledger_status dynamodb_messages_before(struct dynamodb_task *task);
enum ledger_status dynamodb_messages_repair(struct dynamodb_task *task);

/* ---- dynamodb_outbox.c ---- */

enum ledger_status dynamodb_outbox_list(struct dynamodb_task *task);
enum ledger_status dynamodb_outbox_remove(struct dynamodb_task *task);
enum ledger_status dynamodb_outbox_dead_letter_put(struct dynamodb_task *task);
enum ledger_status dynamodb_outbox_dead_letters_list(struct dynamodb_task *task);
enum ledger_status dynamodb_outbox_dead_letter_replay(struct dynamodb_task *task);

#endif
