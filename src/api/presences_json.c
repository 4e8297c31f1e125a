#include "api/presences_json.h"

void presences_json_reply(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (!ok) {
        api_ledger_error(&exchange, LEDGER_UNAVAILABLE);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("presences"));
    json_write_array(&json);
    for (size_t i = 0; i < count; i++)
        fields_write_presence(&json, &presences[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}
