/*
 * Who may make a request: a user or an operator's program with a token, or the application with a token of scope
 * `service` or an API key (api_keys.h), which is taken from the Authorization header only: queries are logged by proxies.
 *
 * Each route names the access it needs (enum rest_access). REST_USER takes a user's token of any scope. The others take
 * one scope each and nothing else: scope `admin` does not include `service`, nor the other way round. What acts for the
 * application names in each request whom it acts for; handlers of REST_SERVICE never use exchange_user() as a user.
 */
#ifndef ROLLCALL_API_API_ACCESS_H
#define ROLLCALL_API_API_ACCESS_H

#include "api/api_context.h"

/* Verifies the token of a request to a route that needs one. Then the body is read, or 401, 403 or 503 is answered. */
void api_access_check(struct exchange *exchange);

#endif
