#include "auth/revocations.h"

#include "auth/user_id.h"
#include "base/container.h"

#include <stdlib.h>

struct revoked_user {
    struct table_node node;
    int64_t revoked_at_s;
    uint8_t len;
    char id[];
};

static bool is_revoked_user(const struct table_node *node, struct slice key)
{
    const struct revoked_user *user = CONTAINER_OF(node, struct revoked_user, node);
    return slice_equal((struct slice){user->id, user->len}, key);
}

bool revocations_init(struct revocations *revocations, uint64_t seed)
{
    *revocations = (struct revocations){0};
    return table_init(&revocations->users, seed, is_revoked_user);
}

static void free_revoked_user(struct table_node *node, void *arg)
{
    struct table *users = arg;
    table_remove(users, node);
    free(CONTAINER_OF(node, struct revoked_user, node));
}

void revocations_free(struct revocations *revocations)
{
    table_each(&revocations->users, free_revoked_user, &revocations->users);
    table_free(&revocations->users);
}

static struct revoked_user *find_revoked_user(const struct revocations *revocations,
                                              struct slice user)
{
    struct table_node *node = table_find(&revocations->users, user);
    return node ? CONTAINER_OF(node, struct revoked_user, node) : NULL;
}

bool revocations_put(struct revocations *revocations, struct slice user, int64_t revoked_at_s)
{
    struct revoked_user *revoked = find_revoked_user(revocations, user);
    if (!revoked) {
        if (user.len > USER_ID_BYTES_MAX)
            return true; /* no token has such a user */
        revoked = malloc(sizeof(*revoked) + user.len);
        if (!revoked)
            return false;
        *revoked = (struct revoked_user){.len = (uint8_t)user.len};
        memcpy(revoked->id, user.data, user.len);
        table_insert(&revocations->users, &revoked->node, user);
    }
    if (revoked_at_s > revoked->revoked_at_s)
        revoked->revoked_at_s = revoked_at_s;
    return true;
}

int64_t revocations_find(const struct revocations *revocations, struct slice user)
{
    const struct revoked_user *revoked = find_revoked_user(revocations, user);
    return revoked ? revoked->revoked_at_s : -1;
}

bool revocations_refuse(const struct revocations *revocations, struct slice user,
                        int64_t issued_at_s)
{
    if (revocations->users.size == 0)
        return false;
    const struct revoked_user *revoked = find_revoked_user(revocations, user);
    return revoked && issued_at_s <= revoked->revoked_at_s;
}
