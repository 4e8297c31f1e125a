/*
 * Drafts: chats whose members are stored in slices, one transaction each.
 *
 * A chat exists from the moment its row in `chats` exists, and the transaction of the last slice inserts that row. The
 * members of a draft have their rows before; every read of a chat goes through `chats` or the chat's counter, so
 * nobody sees them. The draft's own row reserves the chat's id: whoever creates a chat of this id meanwhile waits.
 *
 *   first slice ──► open ──► last slice: the chat exists, the draft's row is deleted
 *                     └────► abandoned: the creation was refused or failed, or the process ended
 *                              └──► cleared by the writer, slice by slice; then the id is free
 *
 * The last slice reads all members once, to check their consent and to answer; that takes as long as storing a few
 * slices.
 *
 * When a group fails, and when the ledger opens, every draft is abandoned: the writer cannot tell which of them were
 * committed. Their requests find that out at their next turn. The number of a draft is never used again.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_CHAT_DRAFTS_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_CHAT_DRAFTS_H

#include "ledger/sqlite/database.h"

/* Opens a draft of a chat that has none. Returns its number; 0 when the database failed. */
int64_t sqlite_chat_drafts_open(struct database *database, struct slice chat);

/* Returns whether the chat's id is reserved by a draft. */
bool sqlite_chat_drafts_reserve(struct database *database, struct slice chat);

/* Returns whether the draft is open, so that its next slice may be stored. */
bool sqlite_chat_drafts_are_open(struct database *database, int64_t draft);

/* Deletes the row of a draft whose chat exists now. */
void sqlite_chat_drafts_close(struct database *database, int64_t draft);

void sqlite_chat_drafts_abandon(struct database *database, int64_t draft);
void sqlite_chat_drafts_abandon_all(struct database *database);

/* Clears a slice of an abandoned draft. Returns false when there is none. */
bool sqlite_chat_drafts_clear(struct database *database);

/* Returns whether there is a draft, open or abandoned. */
bool sqlite_chat_drafts_exist(struct database *database);

#endif
