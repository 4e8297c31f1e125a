/*
 * Refreshes presence when a queue is below its warning level again: changes were shed meanwhile, so the client gets
 * unrequested presence_snapshots of its subscriptions and of its contacts. chat_commands.h refreshes its open chats.
 */
#ifndef ROLLCALL_SESSION_PRESENCE_REFRESH_H
#define ROLLCALL_SESSION_PRESENCE_REFRESH_H

#include "session/session.h"

void presence_refresh(struct session *session);

#endif
