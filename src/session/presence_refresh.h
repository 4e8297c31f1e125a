/*
 * After a queue has drained again: presence changes gave way while it was filling up, so the client is
 * told anew, by presence_snapshots nobody asked for, how those are whom it is subscribed to, and how its
 * friends are. What it has open is told anew by chat_commands.h.
 */
#ifndef ROLLCALL_SESSION_PRESENCE_REFRESH_H
#define ROLLCALL_SESSION_PRESENCE_REFRESH_H

#include "session/session.h"

void presence_refresh(struct session *session);

#endif
