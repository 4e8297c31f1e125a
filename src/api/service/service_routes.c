#include "api/service/service_routes.h"

const struct http_route SERVICE_ROUTES[] = {
    {HTTP1_POST, "/v1/service/chats", REST_SERVICE, service_chats_post},
    {HTTP1_PUT, "/v1/service/chats/{chat}/members/{user}", REST_SERVICE, service_chat_member_put},
    {HTTP1_DELETE, "/v1/service/chats/{chat}/members/{user}", REST_SERVICE,
     service_chat_member_delete},
    {HTTP1_POST, "/v1/service/chats/{chat}/messages", REST_SERVICE, service_message_post},
    {HTTP1_DELETE, "/v1/service/chats/{chat}/messages/{sequence}", REST_SERVICE,
     service_message_delete},
    {HTTP1_POST, "/v1/service/deliver", REST_SERVICE, service_deliver_post},
    {HTTP1_GET, "/v1/service/online", REST_SERVICE, service_online_get},
    {HTTP1_GET, "/v1/service/presence", REST_SERVICE, service_presence_get},
    {HTTP1_PUT, "/v1/service/contacts/{user}/{other}", REST_SERVICE, service_contact_put},
    {HTTP1_DELETE, "/v1/service/contacts/{user}/{other}", REST_SERVICE, service_contact_delete},
    {HTTP1_PUT, "/v1/service/users/{user}/contacts", REST_SERVICE, service_contacts_put},
    {HTTP1_GET, "/v1/service/users/{user}/export", REST_SERVICE, service_export_get},
    {HTTP1_DELETE, "/v1/service/users/{user}", REST_SERVICE, service_user_delete},
    {HTTP1_POST, "/v1/service/import", REST_SERVICE, service_import_post, .streams_body = true},
};

const size_t SERVICE_ROUTE_COUNT = sizeof(SERVICE_ROUTES) / sizeof(SERVICE_ROUTES[0]);

void service_refuse(struct exchange **exchange, const char *problem)
{
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, problem);
}

bool service_read_user(struct exchange **exchange, size_t parameter, struct slice *user)
{
    *user = (*exchange)->parameters[parameter];
    if (user_id_valid(*user))
        return true;
    service_refuse(exchange, "a user id has 1 to 128 bytes and no control characters");
    return false;
}
