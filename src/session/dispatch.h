/*
 * Dispatches decoded commands to their handlers: one table, one row per command. Applies the limits that
 * hold for all commands.
 */
#ifndef ROLLCALL_SESSION_DISPATCH_H
#define ROLLCALL_SESSION_DISPATCH_H

#include "session/session.h"

void dispatch(struct session *session, const struct message *message);

/* Refuses a message that could not be decoded; `message` has the fields that could. */
void dispatch_invalid(struct session *session, const struct message *message, const char *problem);

/* Counts one more command of this connection. Returns 0, or when to retry if it is beyond the rate limit. */
int64_t dispatch_rate_wait_ms(struct session *session);

/* Takes from the user's budget. Returns false after refusing the command. */
bool dispatch_within_budget(struct session *session, const struct message *message,
                            enum budget_class budget, unsigned cost);

/* The handlers, one file per group. */
void handle_heartbeat(struct session *session, const struct message *message);
void handle_subscribe_presence(struct session *session, const struct message *message);
void handle_unsubscribe_presence(struct session *session, const struct message *message);
void handle_query_presence(struct session *session, const struct message *message);
void handle_open_chat(struct session *session, const struct message *message);
void handle_close_chat(struct session *session, const struct message *message);
void handle_typing_start(struct session *session, const struct message *message);
void handle_typing_stop(struct session *session, const struct message *message);
void handle_send_message(struct session *session, const struct message *message);
void handle_ack(struct session *session, const struct message *message);
void handle_sync_request(struct session *session, const struct message *message);
void handle_call_command(struct session *session, const struct message *message);
void handle_event(struct session *session, const struct message *message);
void handle_refresh_token(struct session *session, const struct message *message);
void handle_user_connect(struct session *session, const struct message *message);
void handle_user_disconnect(struct session *session, const struct message *message);

#endif
