#include "api/users_query.h"

#include "auth/user_id.h"
#include "protocol/http1/http1_target.h"

#include <string.h>

bool users_query_read(struct exchange *exchange, struct slice *users, size_t max, size_t *count)
{
    struct slice list = http1_query_find(exchange->head.target.query, SLICE("users"));
    bool escaped_as_whole = list.data && !memchr(list.data, ',', list.len);
    *count = 0;
    if (escaped_as_whole && !http1_query_decode(list, (char *)list.data, &list.len))
        return false;
    while (list.data) {
        struct slice user;
        list = slice_split(list, ',', &user);
        if (*count == max ||
            (!escaped_as_whole && !http1_query_decode(user, (char *)user.data, &user.len)) ||
            !user_id_valid(user))
            return false;
        users[(*count)++] = user;
    }
    return *count > 0;
}
