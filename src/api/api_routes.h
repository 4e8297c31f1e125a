/*
 * The routes of a gateway's HTTP requests: one table with a row for each resource and method (http/http_route.h).
 *
 * A path that exists with other methods only is answered with 405 and Allow.
 */
#ifndef ROLLCALL_API_API_ROUTES_H
#define ROLLCALL_API_API_ROUTES_H

#include "api/api_context.h"
#include "http/http_route.h"

/* Which token a route needs; REST_OPEN needs none. */
enum rest_access { REST_OPEN, REST_USER, REST_ADMIN, REST_DELIVER, REST_SERVICE };

/* How long the body of a request may be, judging by its head. */
size_t api_routes_body_bytes_max(struct exchange *exchange);

/* Finds the route of a request and verifies the token that it needs, before the body is read: nothing is kept for
 * a client who is not authenticated, but API_OPEN_BODY_BYTES_MAX for a route that needs no token. */
enum { API_OPEN_BODY_BYTES_MAX = 4096 };
enum http_head_verdict api_routes_check_head(struct exchange *exchange);

/* Lets the handler of a complete request answer. */
void api_routes_dispatch(struct exchange *exchange);

/* The handlers, one file for each resource. */
void rest_presence_one(struct exchange *exchange);
void rest_presence_many(struct exchange *exchange);
void rest_me_get(struct exchange *exchange);
void rest_me_patch(struct exchange *exchange);
void rest_calls_get(struct exchange *exchange);
void rest_ice_get(struct exchange *exchange);
void rest_friends_get(struct exchange *exchange);
void rest_contact_requests_get(struct exchange *exchange);
void rest_contact_requests_post(struct exchange *exchange);
void rest_contact_request_delete(struct exchange *exchange);
void rest_contact_request_accept(struct exchange *exchange);
void rest_contact_request_decline(struct exchange *exchange);
void rest_contact_delete(struct exchange *exchange);
void rest_blocks_get(struct exchange *exchange);
void rest_block_put(struct exchange *exchange);
void rest_block_delete(struct exchange *exchange);
void rest_deliver(struct exchange *exchange);
void rest_chats_get(struct exchange *exchange);
void rest_chats_post(struct exchange *exchange);
void rest_chat_get(struct exchange *exchange);
void rest_chat_patch(struct exchange *exchange);
void rest_chat_read_post(struct exchange *exchange);
void rest_chat_admin_put(struct exchange *exchange);
void rest_chat_admin_delete(struct exchange *exchange);
void rest_chat_member_put(struct exchange *exchange);
void rest_chat_member_delete(struct exchange *exchange);
void rest_messages_get(struct exchange *exchange);
void rest_message_post(struct exchange *exchange);
void rest_admin_gateways(struct exchange *exchange);
void rest_admin_connections(struct exchange *exchange);
void rest_admin_connection_delete(struct exchange *exchange);
void rest_admin_drain(struct exchange *exchange);
void rest_admin_revoke(struct exchange *exchange);
void rest_admin_explain(struct exchange *exchange);
void rest_health(struct exchange *exchange);
void rest_ready(struct exchange *exchange);
void rest_metrics(struct exchange *exchange);
void rest_dev_token(struct exchange *exchange);
void rest_websocket(struct exchange *exchange);
void rest_echo(struct exchange *exchange);
void rest_asset(struct exchange *exchange);

#endif
