/* ?users=a,b: which users a request is about. */
#ifndef ROLLCALL_API_USERS_QUERY_H
#define ROLLCALL_API_USERS_QUERY_H

#include "http/exchange.h"

/* Splits the list at its commas and decodes the ids in place. An escaped comma belongs to an id, unless all commas are
 * escaped: many clients escape the whole list. Returns false unless there are 1 to `max` valid ids. */
bool users_query_read(struct exchange *exchange, struct slice *users, size_t max, size_t *count);

#endif
