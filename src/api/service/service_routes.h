/*
 * The service API, /v1/service: what the application's own backend does, without the privacy or consent of users.
 *
 * Every route needs scope `service` (REST_SERVICE, api/api_access.h), and every request names whom it acts for: in its
 * path or its body. The user of the token is nobody here. One file of this folder for each resource; errors are those of
 * api/api_context.h and service_refuse().
 */
#ifndef ROLLCALL_API_SERVICE_SERVICE_ROUTES_H
#define ROLLCALL_API_SERVICE_SERVICE_ROUTES_H

#include "api/api_routes.h"

extern const struct http_route SERVICE_ROUTES[];
extern const size_t SERVICE_ROUTE_COUNT;

/* Answers 400 with what is wrong with the request. */
void service_refuse(struct exchange **exchange, const char *problem);

/* Reads a path parameter as a user id. Returns false after answering 400. */
bool service_read_user(struct exchange **exchange, size_t parameter, struct slice *user);

/* The handlers, one file for each resource. */
void service_deliver_post(struct exchange *exchange);
void service_chats_post(struct exchange *exchange);
void service_chat_member_put(struct exchange *exchange);
void service_chat_member_delete(struct exchange *exchange);
void service_message_post(struct exchange *exchange);
void service_message_delete(struct exchange *exchange);
void service_online_get(struct exchange *exchange);
void service_presence_get(struct exchange *exchange);
void service_contact_put(struct exchange *exchange);
void service_contact_delete(struct exchange *exchange);
void service_contacts_put(struct exchange *exchange);
void service_import_post(struct exchange *exchange);
void service_export_get(struct exchange *exchange);
void service_user_delete(struct exchange *exchange);

#endif
