#include "api/page_query.h"

#include "ledger/ledger.h"

static bool read_page_limit(const struct exchange *exchange, uint32_t *limit)
{
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice value;
    uint32_t number = 0;
    if (!http1_query_find(exchange->head.target.query, SLICE("limit")).data)
        return true;
    if (!exchange_query(exchange, SLICE("limit"), text, sizeof(text), &value) || value.len > 4)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(value.data[i] - '0');
    }
    *limit = number;
    return number >= 1 && number <= LEDGER_PAGE_MAX;
}

bool page_query_read_limit(struct exchange **exchange, uint32_t *limit)
{
    if (read_page_limit(*exchange, limit))
        return true;
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "limit must be from 1 to 1000");
    return false;
}

bool page_query_read(struct exchange **exchange, uint32_t limit_default, struct page_query *out)
{
    struct slice name = SLICE("after");
    out->limit = limit_default;
    out->after = SLICE_NONE;
    if (!page_query_read_limit(exchange, &out->limit))
        return false;
    if (!http1_query_find((*exchange)->head.target.query, name).data)
        return true;
    if (exchange_query(*exchange, name, out->after_bytes, sizeof(out->after_bytes), &out->after) &&
        user_id_valid(out->after))
        return true;
    exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "after must be an id");
    return false;
}
