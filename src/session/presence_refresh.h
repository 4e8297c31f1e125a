/*
 * Refreshes presence when a queue has emptied: changes were shed while it was filling up, so the client gets
 * unrequested presence_snapshots of its subscriptions and of its contacts. chat_commands.h refreshes its open chats.
 */
#ifndef ROLLCALL_SESSION_PRESENCE_REFRESH_H
#define ROLLCALL_SESSION_PRESENCE_REFRESH_H

#include "session/session.h"

void presence_refresh(struct session *session);

#endif
