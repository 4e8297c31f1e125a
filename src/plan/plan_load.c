#include "plan/plan_load.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct load_option {
    const char *name;
    const char *argument;
    size_t offset;
    double least;
    double most;
    const char *help;
} OPTIONS[] = {
#define FIELD(name) offsetof(struct plan_load, name)
    {"users", "N", FIELD(users), 1, 1e11,
     "users online at once, such as 50000, 10M or 1.5B; required"},
    {"devices", "N", FIELD(devices), 1, 50, "devices of a user (1.5)"},
    {"sessions-per-day", "N", FIELD(sessions_per_day), 0, 1e5, "connects of a device a day (10)"},
    {"contacts", "N", FIELD(contacts), 0, 1e5,
     "people online who are told of each change of a user's presence (20)"},
    {"messages-per-second", "N", FIELD(messages_per_second), 0, 1e10,
     "messages of the whole fleet (40 a day and user)"},
    {"recipients", "N", FIELD(recipients), 0, 1e6, "devices that a message reaches (2)"},
    {"known-users", "N", FIELD(users_known), 0, 1e12, "users ever seen (10 for each one online)"},
    {"edges", "N", FIELD(edges), 0, 1e7, "exactly this many edges (0: as many as needed)"},
    {"edge-connections", "N", FIELD(edge_connections_max), 1, 1e8, "connections of an edge (100K)"},
    {"edge-cores", "N", FIELD(edge_cores), 1, 1024, "cores, and so workers, of an edge (8)"},
    {"edge-memory", "BYTES", FIELD(edge_memory_bytes), 1e6, 1e15, "memory of an edge (16GiB)"},
    {"aggregator-cores", "N", FIELD(aggregator_cores), 1, 1024, "cores of an aggregator (8)"},
    {"redis-memory", "BYTES", FIELD(redis_memory_bytes), 1e6, 1e15,
     "memory of a Redis node (16GiB)"},
    {"redis-clients", "N", FIELD(redis_clients_max), 10, 1e7, "maxclients of a Redis node (10000)"},
    {"core-share", "SHARE", FIELD(core_share), 0.01, 1,
     "share of each core to plan for; the rest is for failures (0.5)"},
    {"network", "BITS", FIELD(network_bits_per_second), 1e6, 1e13,
     "bits a second of a machine (10G)"},
    {"storm-seconds", "S", FIELD(storm_seconds), 1, 3600,
     "time over which the clients of a lost edge come back (30)"},
#undef FIELD
};

enum { LOAD_OPTION_COUNT = sizeof(OPTIONS) / sizeof(OPTIONS[0]) };

static const struct load_suffix {
    const char *text;
    double factor;
} SUFFIXES[] = {
    {"", 1},          {"K", 1e3},          {"M", 1e6},
    {"G", 1e9},       {"B", 1e9},          {"KiB", 1024},
    {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776.0},
};

static bool parse_quantity(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value) || text[0] == ' ')
        return false;
    for (size_t i = 0; i < sizeof(SUFFIXES) / sizeof(SUFFIXES[0]); i++)
        if (strcmp(end, SUFFIXES[i].text) == 0) {
            *out = value * SUFFIXES[i].factor;
            return true;
        }
    return false;
}

static bool load_set_profile(struct plan_load *load, const char *text,
                             char error[PLAN_LOAD_ERROR_MAX])
{
    if (plan_load_set_profile(load, text))
        return true;
    snprintf(error, PLAN_LOAD_ERROR_MAX,
             "--profile: expected realtime, standard or relaxed, not %.40s", text);
    return false;
}

bool plan_load_set(struct plan_load *load, const char *option, const char *text,
                   char error[PLAN_LOAD_ERROR_MAX])
{
    if (strcmp(option, "profile") == 0)
        return load_set_profile(load, text, error);
    for (size_t i = 0; i < LOAD_OPTION_COUNT; i++) {
        const struct load_option *row = &OPTIONS[i];
        double value;
        if (strcmp(option, row->name) != 0)
            continue;
        if (!parse_quantity(text, &value) || value < row->least || value > row->most) {
            snprintf(error, PLAN_LOAD_ERROR_MAX,
                     "--%s: expected a number from %g to %g, such as 20K or 1.5, not %.40s", option,
                     row->least, row->most, text);
            return false;
        }
        memcpy((char *)load + row->offset, &value, sizeof(value));
        return true;
    }
    snprintf(error, PLAN_LOAD_ERROR_MAX, "unknown option --%.40s", option);
    return false;
}

bool plan_load_is_complete(const struct plan_load *load, char error[PLAN_LOAD_ERROR_MAX])
{
    if (load->users > 0)
        return true;
    snprintf(error, PLAN_LOAD_ERROR_MAX, "--users is missing: how many are online at once?");
    return false;
}

void plan_load_print_help(FILE *out)
{
    fprintf(out, "  --%-24s %s\n", "profile NAME", "realtime, standard (default) or relaxed");
    for (size_t i = 0; i < LOAD_OPTION_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s %s", OPTIONS[i].name, OPTIONS[i].argument);
        fprintf(out, "  --%-24s %s\n", left, OPTIONS[i].help);
    }
}
