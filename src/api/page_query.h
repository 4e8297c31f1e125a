/* ?limit=N&after=ID: which page of a list is requested. */
#ifndef ROLLCALL_API_PAGE_QUERY_H
#define ROLLCALL_API_PAGE_QUERY_H

#include "http/exchange.h"

struct page_query {
    uint32_t limit;     /* 1 to LEDGER_PAGE_MAX */
    struct slice after; /* an id; SLICE_NONE: from the start */
    char after_bytes[EXCHANGE_PARAMETER_BYTES_MAX];
};

/* Reads both parameters; the limit is `limit_default` by default. Returns false after answering 400. */
bool page_query_read(struct exchange **exchange, uint32_t limit_default, struct page_query *out);

/* Reads the limit alone; *limit is the default. Returns false after answering 400. */
bool page_query_read_limit(struct exchange **exchange, uint32_t *limit);

#endif
