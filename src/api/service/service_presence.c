/* GET /v1/service/presence?users=a,b: presence as it is, whatever the users' settings. */
#include "api/presences_json.h"
#include "api/service/service_routes.h"
#include "api/users_query.h"
#include "presence/presence_query.h"

enum { SERVICE_PRESENCE_USERS_MAX = 100 };

void service_presence_get(struct exchange *exchange)
{
    struct presence_query_handler handler = {.done = presences_json_reply, .arg = exchange};
    struct slice users[SERVICE_PRESENCE_USERS_MAX];
    size_t count;
    if (users_query_read(exchange, users, SERVICE_PRESENCE_USERS_MAX, &count))
        presence_query(api_context_of(exchange)->sessions->presence, PRESENCE_QUERY_UNFILTERED,
                       users, count, &handler);
    else
        service_refuse(&exchange, "users must be a comma-separated list of 1 to 100 user ids");
}
