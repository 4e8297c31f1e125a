/* GET /v1/service/online?after=&limit=: everybody who is online, page by page. */
#include "api/page_query.h"
#include "api/service/service_routes.h"

enum { SERVICE_ONLINE_PAGE_DEFAULT = 100 };

static void on_online_page_read(void *arg, enum state_status status,
                                const struct state_online *page)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (status != STATE_OK) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                       "presence cannot be read at present");
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("users"));
    json_write_array(&json);
    for (size_t i = 0; i < page->count; i++)
        json_write_string(&json, page->users[i]);
    json_write_array_end(&json);
    json_write_key(&json, SLICE("next"));
    if (page->next.len)
        json_write_string(&json, page->next);
    else
        json_write_null(&json);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

static bool read_online_after(const struct exchange *exchange,
                              char text[EXCHANGE_PARAMETER_BYTES_MAX], struct slice *after)
{
    struct slice name = SLICE("after");
    struct slice raw = http1_query_find(exchange->head.target.query, name);
    *after = SLICE_NONE;
    if (raw.len == 0)
        return true;
    return exchange_query(exchange, name, text, EXCHANGE_PARAMETER_BYTES_MAX, after) &&
           after->len <= STATE_ONLINE_NEXT_MAX;
}

void service_online_get(struct exchange *exchange)
{
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice after;
    uint32_t limit = SERVICE_ONLINE_PAGE_DEFAULT;
    if (!read_online_after(exchange, text, &after))
        service_refuse(&exchange, "after must be the next of another page");
    else if (page_query_read_limit(&exchange, &limit))
        state_online(api_context_of(exchange)->sessions->presence->store, after, limit,
                     on_online_page_read, exchange);
}
