#include "redis/protocol/redis_problem.h"

static const struct {
    const char *name;
    const char *text;
} problems[] = {
    [REDIS_FINE] = {"fine", "it serves"},
    [REDIS_NOT_TRIED] = {"not_tried", "no connection has been tried yet"},
    [REDIS_NAME_UNKNOWN] = {"name_unknown", "its host name has no address"},
    [REDIS_UNREACHABLE] = {"unreachable", "no connection can be made"},
    [REDIS_DISTRUSTED] = {"distrusted",
                          "TLS failed: its certificate is not trusted, or it speaks none"},
    [REDIS_SILENT] = {"silent", "it did not answer in time"},
    [REDIS_BROKEN_OFF] = {"broken_off", "it closed the connection"},
    [REDIS_NOT_UNDERSTOOD] = {"not_understood", "what it answers is not the Redis protocol"},
    [REDIS_LOGIN_REFUSED] = {"login_refused", "it refused the user name or password, or wants one"},
    [REDIS_CROWDED] = {"crowded", "it has as many clients as maxclients allows"},
    [REDIS_LOADING] = {"loading", "it is loading its data"},
    [REDIS_READ_ONLY] = {"read_only", "it is a read-only replica, not a master"},
    [REDIS_OUT_OF_MEMORY] = {"out_of_memory", "it has used up maxmemory and takes no writes"},
    [REDIS_WRITES_REFUSED] = {"writes_refused", "it takes no writes: its disk or replicas failed"},
    [REDIS_BUSY] = {"busy", "a script keeps it busy"},
    [REDIS_CLUSTER_DOWN] = {"cluster_down", "the cluster does not serve all slots"},
    [REDIS_CLUSTER_OFF] = {"cluster_off", "it does not run as a cluster; use redis:// for it"},
    [REDIS_CLUSTER_ON] = {"cluster_on", "it is one of a cluster; use redis-cluster:// for it"},
    [REDIS_HANDSHAKE_REFUSED] = {"handshake_refused", "it refused the handshake"},
    [REDIS_SENTINELS_SILENT] = {"sentinels_silent", "no sentinel answers"},
    [REDIS_SENTINEL_OFF] = {"sentinel_off", "it is not a sentinel; use redis:// for it"},
    [REDIS_MASTER_UNKNOWN] = {"master_unknown", "the sentinels know no master of this name"},
};

static const struct {
    const char *word;
    enum redis_problem problem;
} errors[] = {
    {"NOAUTH", REDIS_LOGIN_REFUSED},
    {"WRONGPASS", REDIS_LOGIN_REFUSED},
    {"LOADING", REDIS_LOADING},
    {"READONLY", REDIS_READ_ONLY},
    {"OOM", REDIS_OUT_OF_MEMORY},
    {"MISCONF", REDIS_WRITES_REFUSED},
    {"NOREPLICAS", REDIS_WRITES_REFUSED},
    {"MASTERDOWN", REDIS_READ_ONLY},
    {"BUSY", REDIS_BUSY},
    {"CLUSTERDOWN", REDIS_CLUSTER_DOWN},
};

enum redis_problem redis_problem_of(const struct resp_value *reply)
{
    if (reply->type != RESP_ERROR)
        return REDIS_FINE;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (resp_is_error(reply, errors[i].word))
            return errors[i].problem;
    return REDIS_FINE;
}

bool redis_problem_needs_reconnect(enum redis_problem problem)
{
    return problem == REDIS_LOGIN_REFUSED || problem == REDIS_READ_ONLY;
}

const char *redis_problem_name(enum redis_problem problem)
{
    return problems[problem].name;
}

const char *redis_problem_text(enum redis_problem problem)
{
    return problems[problem].text;
}
