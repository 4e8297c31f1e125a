/* A list of presences as REST resources answer it. */
#ifndef ROLLCALL_API_PRESENCES_JSON_H
#define ROLLCALL_API_PRESENCES_JSON_H

#include "api/api_context.h"

/* The completion of a presence query (presence/presence_query.h) for an exchange: answers {"presences":[…]}, or 503. */
void presences_json_reply(void *arg, bool ok, const struct presence *presences, size_t count);

#endif
