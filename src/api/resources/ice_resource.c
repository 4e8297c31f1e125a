/* GET /v1/ice: what a browser needs for calls across NAT, as the `iceServers` of an RTCPeerConnection. */
#include "api/api_routes.h"
#include "auth/turn_credentials.h"

enum ice_kind { ICE_STUN, ICE_TURN };

static bool is_ice_kind(const char *url, enum ice_kind kind)
{
    return (url[0] == 't') == (kind == ICE_TURN);
}

static size_t count_ice_urls(const struct config_list *urls, enum ice_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < urls->count; i++)
        count += is_ice_kind(urls->items[i], kind);
    return count;
}

/* Writes the URLs of one kind as one entry, without credentials if `username` is NULL. */
static void write_ice_server(struct buffer *json, const struct config_list *urls,
                             enum ice_kind kind, const char *username, const char *credential)
{
    if (count_ice_urls(urls, kind) == 0)
        return;
    json_write_object(json);
    json_write_key(json, SLICE("urls"));
    json_write_array(json);
    for (size_t i = 0; i < urls->count; i++)
        if (is_ice_kind(urls->items[i], kind))
            json_write_string(json, slice_of(urls->items[i]));
    json_write_array_end(json);
    if (username) {
        json_write_key_string(json, SLICE("username"), slice_of(username));
        json_write_key_string(json, SLICE("credential"), slice_of(credential));
    }
    json_write_object_end(json);
}

void rest_ice_get(struct exchange *exchange)
{
    const struct session_context *sessions = api_context_of(exchange)->sessions;
    const struct config *config = sessions->config;
    int64_t expires_at_ms = sessions->loop->clock.wall_ms + config->turn.ttl_ms;
    struct turn_credentials made;
    struct buffer json = BUFFER_INIT;
    if (!turn_credentials_make(&made, slice_of(config->turn.secret), exchange_user(exchange),
                               expires_at_ms / 1000)) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("iceServers"));
    json_write_array(&json);
    write_ice_server(&json, &config->ice.servers, ICE_STUN, NULL, NULL);
    write_ice_server(&json, &config->ice.servers, ICE_TURN, config->ice.username,
                     config->ice.credential);
    write_ice_server(&json, &config->turn.urls, ICE_TURN, made.username, made.credential);
    json_write_array_end(&json);
    json_write_key_int(&json, SLICE("ttl_seconds"), config->turn.ttl_ms / 1000);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}
