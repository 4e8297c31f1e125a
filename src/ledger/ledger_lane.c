#include "ledger/ledger_lane.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>

struct ledger_flow {
    struct table_node node;
    struct list turn;
    struct ledger_request *first;
    struct ledger_request **last_next;
    size_t count;
    uint64_t cost;
    uint64_t earned;
    uint8_t user_len;
    char user[];
};

static bool ledger_flow_matches(const struct table_node *node, struct slice key)
{
    const struct ledger_flow *flow = CONTAINER_OF(node, struct ledger_flow, node);
    return slice_equal((struct slice){flow->user, flow->user_len}, key);
}

bool ledger_lane_init(struct ledger_lane *lane, size_t user_count_max, uint64_t slice_cost,
                      uint64_t seed)
{
    *lane = (struct ledger_lane){.user_count_max = user_count_max, .slice_cost = slice_cost};
    list_init(&lane->turns);
    return table_init(&lane->flows, seed, ledger_flow_matches);
}

void ledger_lane_free(struct ledger_lane *lane)
{
    assert(lane->count == 0);
    table_free(&lane->flows);
}

static struct ledger_flow *make_ledger_flow(struct ledger_lane *lane, struct slice user)
{
    struct ledger_flow *flow = calloc(1, sizeof(*flow) + user.len);
    if (!flow)
        return NULL;
    flow->last_next = &flow->first;
    flow->earned = LEDGER_LANE_QUANTUM;
    flow->user_len = (uint8_t)user.len;
    if (user.len)
        memcpy(flow->user, user.data, user.len);
    table_insert(&lane->flows, &flow->node, user);
    list_append(&lane->turns, &flow->turn);
    return flow;
}

static void free_ledger_flow(struct ledger_lane *lane, struct ledger_flow *flow)
{
    table_remove(&lane->flows, &flow->node);
    list_remove(&flow->turn);
    free(flow);
}

static struct ledger_flow *find_ledger_flow(const struct ledger_lane *lane, struct slice user)
{
    struct table_node *node = table_find(&lane->flows, user);
    return node ? CONTAINER_OF(node, struct ledger_flow, node) : NULL;
}

static void add_to_flow(struct ledger_lane *lane, struct ledger_flow *flow,
                        struct ledger_request *request, bool as_first)
{
    struct ledger_request **at = as_first ? &flow->first : flow->last_next;
    uint64_t cost = ledger_request_cost(request);
    request->next = *at;
    *at = request;
    if (!request->next)
        flow->last_next = &request->next;
    flow->count++;
    flow->cost += cost;
    lane->count++;
    lane->cost += cost;
}

enum ledger_lane_refusal ledger_lane_put(struct ledger_lane *lane, struct ledger_request *request)
{
    struct slice user = ledger_request_user(request);
    uint64_t cost = ledger_request_cost(request);
    struct ledger_flow *flow = find_ledger_flow(lane, user);
    if (flow && user.len &&
        (flow->count >= lane->user_count_max || flow->cost + cost > LEDGER_LANE_USER_COST_MAX))
        return LEDGER_LANE_OVER_SHARE;
    if (user.len && lane->cost + cost > LEDGER_LANE_COST_MAX)
        return LEDGER_LANE_FULL;
    if (!flow && !(flow = make_ledger_flow(lane, user)))
        return LEDGER_LANE_FULL;
    add_to_flow(lane, flow, request, false);
    return LEDGER_LANE_TAKEN;
}

bool ledger_lane_put_back(struct ledger_lane *lane, struct ledger_request *request)
{
    struct slice user = ledger_request_user(request);
    struct ledger_flow *flow = find_ledger_flow(lane, user);
    if (!flow && !(flow = make_ledger_flow(lane, user)))
        return false;
    add_to_flow(lane, flow, request, request->ids_done > 0);
    return true;
}

uint64_t ledger_lane_price(const struct ledger_lane *lane, const struct ledger_request *request)
{
    uint64_t cost = ledger_request_cost(request);
    return cost < lane->slice_cost ? cost : lane->slice_cost;
}

/* Returns the flow whose first request has been earned. A flow without company needs to earn nothing. */
static struct ledger_flow *find_flow_at_turn(struct ledger_lane *lane)
{
    for (;;) {
        struct ledger_flow *flow = CONTAINER_OF(lane->turns.next, struct ledger_flow, turn);
        if (flow->earned >= ledger_lane_price(lane, flow->first) || lane->flows.size == 1)
            return flow;
        flow->earned += LEDGER_LANE_QUANTUM;
        list_remove(&flow->turn);
        list_append(&lane->turns, &flow->turn);
    }
}

struct ledger_request *ledger_lane_take(struct ledger_lane *lane)
{
    if (lane->count == 0)
        return NULL;
    struct ledger_flow *flow = find_flow_at_turn(lane);
    struct ledger_request *request = flow->first;
    uint64_t cost = ledger_request_cost(request), price = ledger_lane_price(lane, request);
    flow->earned = flow->earned > price ? flow->earned - price : 0;
    flow->first = request->next;
    flow->count--;
    flow->cost -= cost;
    lane->count--;
    lane->cost -= cost;
    request->next = NULL;
    if (!flow->first)
        free_ledger_flow(lane, flow);
    return request;
}
