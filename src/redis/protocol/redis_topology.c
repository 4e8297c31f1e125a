#include "redis/protocol/redis_topology.h"

enum { RANGE_ITEMS_MIN = 3, NODE_ITEMS_MIN = 2 };

static bool topology_set_address(struct redis_address *address, struct slice host, int64_t port,
                                 const char *asked_host)
{
    if (port < 1 || port > UINT16_MAX)
        return false;
    if (host.len == 0 || slice_is(host, "?"))
        host = slice_of(asked_host);
    return redis_address_set(address, host, (uint16_t)port);
}

static bool topology_read_node(const struct resp_value *node, const char *asked_host,
                               struct redis_address *out)
{
    if (node->type != RESP_ARRAY || node->count < NODE_ITEMS_MIN)
        return false;
    const struct resp_value *host = &node->items[0];
    if ((host->type != RESP_TEXT && host->type != RESP_NULL) || node->items[1].type != RESP_INTEGER)
        return false;
    return topology_set_address(out, host->text, node->items[1].integer, asked_host);
}

/* Returns the address's index in the list, adding it when it is new; `max` when the list is full. */
static size_t topology_add_address(struct redis_address *list, size_t *count, size_t max,
                                   const struct redis_address *address)
{
    for (size_t i = 0; i < *count; i++)
        if (redis_address_equal(&list[i], address))
            return i;
    if (*count == max)
        return max;
    list[*count] = *address;
    return (*count)++;
}

static bool topology_read_range(struct redis_topology *out, const struct resp_value *range,
                                const char *asked_host)
{
    struct redis_address address;
    if (range->type != RESP_ARRAY || range->count < RANGE_ITEMS_MIN ||
        range->items[0].type != RESP_INTEGER || range->items[1].type != RESP_INTEGER)
        return false;
    int64_t first = range->items[0].integer;
    int64_t last = range->items[1].integer;
    if (first < 0 || last < first || last >= REDIS_SLOTS ||
        !topology_read_node(&range->items[2], asked_host, &address))
        return false;
    size_t master =
        topology_add_address(out->masters, &out->master_count, REDIS_NODES_MAX, &address);
    if (master == REDIS_NODES_MAX)
        return false;
    for (int64_t slot = first; slot <= last; slot++)
        out->owner[slot] = (uint16_t)master;
    for (size_t i = RANGE_ITEMS_MIN; i < range->count; i++)
        if (topology_read_node(&range->items[i], asked_host, &address))
            topology_add_address(out->replicas, &out->replica_count, REDIS_NODES_MAX, &address);
    return true;
}

bool redis_topology_read(struct redis_topology *out, const struct resp_value *reply,
                         const char *asked_host)
{
    if (reply->type != RESP_ARRAY)
        return false;
    out->master_count = 0;
    out->replica_count = 0;
    for (size_t slot = 0; slot < REDIS_SLOTS; slot++)
        out->owner[slot] = REDIS_NO_OWNER;
    for (size_t i = 0; i < reply->count; i++)
        if (!topology_read_range(out, &reply->items[i], asked_host))
            return false;
    return true;
}

bool redis_topology_redirect(struct slice error, const char *asked_host, uint16_t *slot,
                             struct redis_address *address)
{
    struct slice word;
    int64_t number;
    int64_t port;
    struct slice place = slice_split(slice_split(error, ' ', &word), ' ', &word);
    /* the last colon: an IPv6 host has others, and no brackets */
    const char *colon = place.len ? memrchr(place.data, ':', place.len) : NULL;
    if (!colon || !resp_parse_integer(word, &number) || number < 0 || number >= REDIS_SLOTS)
        return false;
    struct slice host = {place.data, (size_t)(colon - place.data)};
    *slot = (uint16_t)number;
    return resp_parse_integer(slice_after(place, host.len + 1), &port) &&
           topology_set_address(address, host, port, asked_host);
}
