#include "plan/plan_costs.h"

#include "text/json.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cost_row {
    const char *name;
    size_t offset;
} COSTS[] = {
#define PLAN_COST_ROW(name) {#name, offsetof(struct plan_costs, name)},
    PLAN_COST_LIST(PLAN_COST_ROW)
#undef PLAN_COST_ROW
};

enum { COST_COUNT = sizeof(COSTS) / sizeof(COSTS[0]) };

static double *cost_find(struct plan_costs *costs, struct slice name)
{
    for (size_t i = 0; i < COST_COUNT; i++)
        if (slice_is(name, COSTS[i].name))
            return (double *)((char *)costs + COSTS[i].offset);
    return NULL;
}

static bool cost_read(struct json *json, struct plan_costs *costs, struct slice name,
                      char error[PLAN_COSTS_ERROR_MAX])
{
    double *cost = cost_find(costs, name);
    if (!cost) {
        snprintf(error, PLAN_COSTS_ERROR_MAX, "unknown cost %.*s", (int)name.len, name.data);
        return false;
    }
    if (!json_double(json, cost) || *cost < 0) {
        snprintf(error, PLAN_COSTS_ERROR_MAX, "%.*s: expected a number of 0 or more", (int)name.len,
                 name.data);
        return false;
    }
    return true;
}

static bool costs_read(struct json *json, struct plan_costs *costs,
                       char error[PLAN_COSTS_ERROR_MAX])
{
    struct slice name;
    json_object(json);
    while (json_member(json, &name))
        if (!cost_read(json, costs, name, error))
            return false;
    return true;
}

static bool costs_are_complete(struct plan_costs *costs, char error[PLAN_COSTS_ERROR_MAX])
{
    for (size_t i = 0; i < COST_COUNT; i++)
        if (isnan(*(double *)((char *)costs + COSTS[i].offset))) {
            snprintf(error, PLAN_COSTS_ERROR_MAX, "%s is missing", COSTS[i].name);
            return false;
        }
    return true;
}

static void costs_clear(struct plan_costs *costs)
{
    for (size_t i = 0; i < COST_COUNT; i++)
        *(double *)((char *)costs + COSTS[i].offset) = NAN;
}

static bool costs_parse_copy(struct plan_costs *costs, char *copy, size_t count,
                             char error[PLAN_COSTS_ERROR_MAX])
{
    struct json json;
    struct slice key;
    json_init(&json, copy, count);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (!slice_is(key, "costs"))
            json_skip(&json);
        else if (!costs_read(&json, costs, error))
            return false;
    }
    if (json_done(&json))
        return costs_are_complete(costs, error);
    snprintf(error, PLAN_COSTS_ERROR_MAX, "at byte %zu: expected %s", json.error_at,
             json.error ? json.error : "the end");
    return false;
}

bool plan_costs_parse(struct plan_costs *costs, const char *text, size_t count,
                      char error[PLAN_COSTS_ERROR_MAX])
{
    char *copy = malloc(count + 1); /* the parser writes to its input */
    costs_clear(costs);
    if (!copy) {
        snprintf(error, PLAN_COSTS_ERROR_MAX, "out of memory");
        return false;
    }
    memcpy(copy, text, count);
    bool parsed = costs_parse_copy(costs, copy, count, error);
    free(copy);
    return parsed;
}

void plan_costs_builtin(struct plan_costs *costs)
{
    char error[PLAN_COSTS_ERROR_MAX];
    bool parsed = plan_costs_parse(costs, PLAN_COSTS_TEXT, strlen(PLAN_COSTS_TEXT), error);
    assert(parsed); /* plan_test parses the file too */
    (void)parsed;
}
