/*
 * From a decoded message to its handler: one table, one row a command. Limits that hold for all
 * commands are applied here.
 */
#ifndef ROLLCALL_SESSION_DISPATCH_H
#define ROLLCALL_SESSION_DISPATCH_H

#include "session/session.h"

void dispatch(struct session *session, const struct message *message);

/* Answers what could not be decoded; `message` has what could. */
void dispatch_invalid(struct session *session, const struct message *message, const char *problem);

/* Whether one more command may come from this connection, which is counted; else when. */
bool dispatch_within_rate(struct session *session, int64_t *retry_after_ms);

/* The handlers, one file a group. */
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
void handle_call_request(struct session *session, const struct message *message);
void handle_call_accept(struct session *session, const struct message *message);
void handle_call_reject(struct session *session, const struct message *message);
void handle_call_end(struct session *session, const struct message *message);
void handle_call_signal(struct session *session, const struct message *message);
void handle_refresh_token(struct session *session, const struct message *message);
void handle_user_connect(struct session *session, const struct message *message);
void handle_user_disconnect(struct session *session, const struct message *message);
void handle_call_declare_start(struct session *session, const struct message *message);
void handle_call_declare_end(struct session *session, const struct message *message);

#endif
