/*
 * The operations of the SQLite ledger: one file per subject, one function per operation of the port.
 *
 * An operation runs inside a transaction that its caller has opened (the writer's group, a reader's
 * snapshot), fills in its field of request->outcome and returns the status. For any status but LEDGER_OK
 * the caller clears the outcome and undoes what was written. An operation need not check for failures of
 * SQLite: they are sticky in the database, and the caller then answers UNAVAILABLE, whatever the operation
 * returned.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_OPERATIONS_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_OPERATIONS_H

#include "ledger/ledger_request.h"
#include "ledger/sqlite/database.h"

typedef enum ledger_status (*sqlite_operation)(struct database *database,
                                               struct ledger_request *request);

/* ---- sqlite_operations.c ---- */

/* Executes a request and completes its outcome, also when it fails. Returns false when nothing that it
 * wrote may be kept. */
bool sqlite_operations_execute(struct database *database, struct ledger_request *request);

/* Reads the only column of a query into the request's memory and ends the query. */
const struct slice *sqlite_operations_read_ids(struct ledger_request *request, struct query query,
                                               size_t *count);

/* ---- sqlite_users.c ---- */

enum ledger_status sqlite_users_settings_get(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_settings_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_profiles(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_appearances(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_graph(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_last_seen_put(struct database *, struct ledger_request *);

/* ---- sqlite_contacts.c ---- */

enum ledger_status sqlite_contacts_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_contacts_remove(struct database *, struct ledger_request *);

/* Returns whether each of the two may have one more contact. */
bool sqlite_contacts_have_space(struct database *database, struct slice user, struct slice other);

/* Makes two users contacts, for both. `request_id` led to it; "" if none did. */
void sqlite_contacts_insert(struct database *database, struct slice user, struct slice other,
                            struct slice request_id, int64_t since_ms);

/* Ends a contact for both. Returns whether the two were contacts. */
bool sqlite_contacts_delete(struct database *database, struct slice user, struct slice other);

/* Returns whether the two are contacts. */
bool sqlite_contacts_exist(struct database *database, struct slice user, struct slice other);

/* ---- sqlite_contact_requests.c ---- */

enum ledger_status sqlite_contact_requests_create(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_accept(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_decline(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_withdraw(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_list(struct database *, struct ledger_request *);

/* Applies a new block to the contact requests between the two. */
void sqlite_contact_requests_block(struct database *database, struct slice user,
                                   struct slice other);

/* Ends the contact requests between the two. Returns the id of one of them, in the request's memory; "" if there was
 * none. */
struct slice sqlite_contact_requests_settle(struct database *database,
                                            struct ledger_request *request, struct slice user,
                                            struct slice other);

/* ---- sqlite_blocks.c ---- */

enum ledger_status sqlite_blocks_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_blocks_delete(struct database *, struct ledger_request *);
enum ledger_status sqlite_blocks_list(struct database *, struct ledger_request *);

/* `user` blocks `other`. LIMIT when there are too many blocks. */
enum ledger_status sqlite_blocks_add(struct database *database, struct slice user,
                                     struct slice other, int64_t since_ms,
                                     struct ledger_block_outcome *outcome);

/* Returns whether `user` blocks `other`. */
bool sqlite_blocks_exist(struct database *database, struct slice user, struct slice other);

/* ---- sqlite_relations.c ---- */

enum ledger_status sqlite_relations_change(struct database *, struct ledger_request *);

/* ---- sqlite_chats.c ---- */

enum ledger_status sqlite_chats_get(struct database *, struct ledger_request *);
enum ledger_status sqlite_chats_list(struct database *, struct ledger_request *);

/* The parts of a chat to read besides itself. */
struct sqlite_chat_parts {
    bool members;
    bool profiles;
    bool direct_profiles; /* only of a direct chat */
};

extern const struct sqlite_chat_parts SQLITE_CHAT_WITH_MEMBERS;
extern const struct sqlite_chat_parts SQLITE_CHAT_WITH_PROFILES;

/* Reads a chat into `chat`, as `reader` sees it. Returns NOT_FOUND when there is none. */
enum ledger_status sqlite_chats_read(struct database *database, struct ledger_request *request,
                                     struct slice id, struct slice reader,
                                     const struct sqlite_chat_parts *parts,
                                     struct ledger_chat *chat);

/* ---- sqlite_chat_create.c ---- */

enum ledger_status sqlite_chat_create_group(struct database *, struct ledger_request *);
enum ledger_status sqlite_chat_create_direct(struct database *, struct ledger_request *);

/* ---- sqlite_roles.c ---- */

enum ledger_status sqlite_roles_admin_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_roles_admin_delete(struct database *, struct ledger_request *);
enum ledger_status sqlite_roles_change_chat(struct database *, struct ledger_request *);

/* Makes a member an admin, or one no longer. Returns whether that changed anything. */
bool sqlite_roles_set_admin(struct database *database, struct slice chat, struct slice user,
                            bool is_admin);

/* ---- sqlite_members.c ---- */

enum ledger_status sqlite_members_check(struct database *, struct ledger_request *);
enum ledger_status sqlite_members_add(struct database *, struct ledger_request *);
enum ledger_status sqlite_members_remove(struct database *, struct ledger_request *);

/* What a user is in a chat; all false if no member. */
struct sqlite_standing {
    bool is_member;
    bool is_admin;
    bool is_group;
    bool members_can_add;
    int64_t member_count;
};

struct sqlite_standing sqlite_members_standing(struct database *database, struct slice chat,
                                               struct slice user);

/* Returns OK for a member, else NOT_FOUND. With `user` SLICE_NONE, OK means only that the chat exists. */
enum ledger_status sqlite_members_access(struct database *database, struct slice chat,
                                         struct slice user);

struct sqlite_new_member {
    struct slice chat;
    struct slice user;
    struct slice added_by; /* who adds themselves creates the chat, and is admin of a group */
    bool is_group;
    int64_t since_ms;
    int64_t listed_ms;
};

/* Returns false when the user is already a member. */
bool sqlite_members_insert(struct database *database, const struct sqlite_new_member *member);

/* Adds to the number of members, after they were inserted or deleted, and raises their version. */
void sqlite_members_count(struct database *database, struct slice chat, int64_t added);

/* Returns whether the user blocks a member of the chat, or a member blocks the user. */
bool sqlite_members_have_block(struct database *database, struct slice chat, struct slice user);

/* ---- sqlite_calls.c ---- */

enum ledger_status sqlite_calls_append(struct database *, struct ledger_request *);
enum ledger_status sqlite_calls_list(struct database *, struct ledger_request *);

/* ---- sqlite_messages.c ---- */

enum ledger_status sqlite_messages_delete(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_append(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_after(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_before(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_repair(struct database *, struct ledger_request *);

#define SQLITE_MESSAGE_COLUMNS                                                                     \
    "m.chat_id, m.sequence, m.message_id, m.sender, m.client_message_id, m.body, m.sent_at_ms"

/* Fills in the request's outcome from a query that selects SQLITE_MESSAGE_COLUMNS and whose last
 * parameter, the limit, is not bound yet. Ends the query. */
void sqlite_messages_read_page(struct ledger_request *request, struct query query);

/* ---- sqlite_former_chats.c ---- */

enum ledger_status sqlite_former_chats_list(struct database *, struct ledger_request *);

/* The user has left the chat: remembers it if there are messages of the user in it. */
void sqlite_former_chats_add(struct database *database, struct slice chat, struct slice user);

/* The user has come back, or nothing of the user is left in it. */
void sqlite_former_chats_remove(struct database *database, struct slice chat, struct slice user);

/* ---- sqlite_erasure.c ---- */

enum ledger_status sqlite_erasure_messages(struct database *, struct ledger_request *);
enum ledger_status sqlite_erasure_forget(struct database *, struct ledger_request *);

/* ---- sqlite_cursors.c ---- */

enum ledger_status sqlite_cursors_put(struct database *, struct ledger_request *);

/* Returns the highest sequence that any of the user's devices has acknowledged. */
uint64_t sqlite_cursors_read_mark(struct database *database, struct slice chat, struct slice user);

/* ---- sqlite_outbox.c ---- */

enum ledger_status sqlite_outbox_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_outbox_remove(struct database *, struct ledger_request *);
enum ledger_status sqlite_outbox_dead_letter_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_outbox_dead_letters_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_outbox_dead_letter_replay(struct database *, struct ledger_request *);

/* ---- sqlite_events.c ---- */

enum ledger_status sqlite_events_call(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_remove(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_bury(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_list_dead(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_replay(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_queue_get(struct database *, struct ledger_request *);
enum ledger_status sqlite_events_lease(struct database *, struct ledger_request *);

/* Writes the events of a request that has succeeded, in its transaction. */
void sqlite_events_derive(struct database *database, struct ledger_request *request);

/* ---- sqlite_keys.c ---- */

enum ledger_status sqlite_keys_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_keys_delete(struct database *, struct ledger_request *);
enum ledger_status sqlite_keys_used(struct database *, struct ledger_request *);
enum ledger_status sqlite_keys_list(struct database *, struct ledger_request *);

/* ---- sqlite_revocations.c ---- */

enum ledger_status sqlite_revocations_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_revocations_list(struct database *, struct ledger_request *);

#endif
