/*
 * The SQLite ledger's rooms: one file per subject, one function per operation of the port.
 *
 * Each runs inside a transaction its caller has opened (the writer's savepoint, a reader's
 * snapshot), fills in its member of request->outcome and returns the status. Anything but LEDGER_OK
 * makes the caller clear the outcome and undo what was written. A failure of SQLite need not be
 * looked at: it is sticky in the database, and the caller answers UNAVAILABLE whatever the function
 * returned.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_OPERATIONS_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_OPERATIONS_H

#include "ledger/ledger_request.h"
#include "ledger/sqlite/database.h"

/* sqlite_rooms.c: runs a request, failures and all; the outcome is complete afterwards. False when
 * there is nothing to keep of it. */
bool sqlite_rooms_execute(struct database *database, struct ledger_request *request);

/* Reads a query's only column into the request's memory. */
const struct slice *sqlite_rooms_read_ids(struct ledger_request *request, struct query query,
                                          size_t *count);

/* sqlite_users.c */
enum ledger_status sqlite_users_settings_get(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_settings_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_profiles(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_graph(struct database *, struct ledger_request *);
enum ledger_status sqlite_users_last_seen_put(struct database *, struct ledger_request *);

/* sqlite_contacts.c */
enum ledger_status sqlite_contacts_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_contacts_remove(struct database *, struct ledger_request *);

/* Makes two users contacts, for both. LIMIT when one of them has too many. */
enum ledger_status sqlite_contacts_join(struct database *database, struct slice user,
                                        struct slice peer, struct slice request_id,
                                        int64_t since_ms);

/* True when they were contacts. */
bool sqlite_contacts_part(struct database *database, struct slice user, struct slice peer);
bool sqlite_contacts_joined(struct database *database, struct slice user, struct slice peer);

/* sqlite_contact_requests.c */
enum ledger_status sqlite_contact_requests_create(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_accept(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_decline(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_withdraw(struct database *, struct ledger_request *);
enum ledger_status sqlite_contact_requests_list(struct database *, struct ledger_request *);

/* What a block does to the requests between the two. */
void sqlite_contact_requests_block(struct database *database, struct slice user, struct slice peer);

/* sqlite_blocks.c */
enum ledger_status sqlite_blocks_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_blocks_delete(struct database *, struct ledger_request *);
enum ledger_status sqlite_blocks_list(struct database *, struct ledger_request *);

/* Whether `user` has blocked `peer`. */
bool sqlite_blocks_stands(struct database *database, struct slice user, struct slice peer);

/* sqlite_chats.c */
enum ledger_status sqlite_chats_get(struct database *, struct ledger_request *);
enum ledger_status sqlite_chats_list(struct database *, struct ledger_request *);

/* Reads a chat into `chat`, as `viewer` sees it. NOT_FOUND when there is none. */
enum ledger_status sqlite_chats_read(struct database *database, struct ledger_request *request,
                                     struct slice id, struct slice viewer, bool with_members,
                                     struct ledger_chat *chat);

/* sqlite_members.c */
enum ledger_status sqlite_members_create_chat(struct database *, struct ledger_request *);
enum ledger_status sqlite_members_check(struct database *, struct ledger_request *);
enum ledger_status sqlite_members_add(struct database *, struct ledger_request *);
enum ledger_status sqlite_members_remove(struct database *, struct ledger_request *);

/* OK, FORBIDDEN or NOT_FOUND. `user` SLICE_NONE: only that the chat exists. */
enum ledger_status sqlite_members_access(struct database *database, struct slice chat,
                                         struct slice user);

/* Whether the user has blocked a member of the chat, or a member the user. */
bool sqlite_members_block_within(struct database *database, struct slice chat, struct slice user);

/* sqlite_calls.c */
enum ledger_status sqlite_calls_append(struct database *, struct ledger_request *);
enum ledger_status sqlite_calls_list(struct database *, struct ledger_request *);

/* sqlite_messages.c */
enum ledger_status sqlite_messages_append(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_after(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_before(struct database *, struct ledger_request *);
enum ledger_status sqlite_messages_repair(struct database *, struct ledger_request *);

/* Makes the request's outcome of a query that selects SQLITE_MESSAGE_COLUMNS and lacks but its last value, the
 * limit. Ends the query. */
#define SQLITE_MESSAGE_COLUMNS                                                                     \
    "m.chat_id, m.sequence, m.message_id, m.sender, m.client_message_id, m.body, m.sent_at_ms"
void sqlite_messages_read_page(struct ledger_request *request, struct query query);

/* sqlite_delivery.c */
enum ledger_status sqlite_delivery_cursor_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_delivery_outbox_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_delivery_outbox_remove(struct database *, struct ledger_request *);
enum ledger_status sqlite_delivery_dead_letter_put(struct database *, struct ledger_request *);
enum ledger_status sqlite_delivery_dead_letters_list(struct database *, struct ledger_request *);
enum ledger_status sqlite_delivery_dead_letter_replay(struct database *, struct ledger_request *);

#endif
