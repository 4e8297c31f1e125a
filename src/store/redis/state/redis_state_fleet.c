/* The gateways that are alive: reads the list of gateways, then the record of each. */
#include "store/redis/state/redis_state_internal.h"
#include "text/time_text.h"

#include <stdlib.h>

struct fleet_read;

struct fleet_gateway {
    struct fleet_read *fleet;
    bool has_record;
    struct gateway_info info;
    char id[GATEWAY_ID_BYTES_MAX];
    char peer_address[STATE_PEER_ADDRESS_MAX];
};

struct fleet_read {
    struct redis_state *state;
    state_gateways_done done;
    void *arg;
    size_t waiting; /* records, and one while they are being requested */
    bool failed;
    size_t count;
    struct fleet_gateway *gateways;
};

/* Runs once for each record; the last run completes the operation. */
static void end_fleet_record(struct fleet_read *fleet)
{
    if (--fleet->waiting)
        return;
    struct redis_state *state = fleet->state;
    struct gateway_info *infos = calloc(fleet->count + 1, sizeof(*infos));
    size_t count = 0;
    for (size_t i = 0; infos && i < fleet->count; i++)
        if (fleet->gateways[i].has_record)
            infos[count++] = fleet->gateways[i].info;
    if (infos && !fleet->failed)
        redis_state_note_fleet(state, infos, count);
    fleet->done(fleet->arg, infos && !fleet->failed ? STATE_OK : STATE_UNAVAILABLE, infos, count);
    free(infos);
    free(fleet->gateways);
    free(fleet);
    redis_state_end(state);
}

/* A record of the wrong type counts as absent. */
static void on_fleet_record_read(void *arg, const struct resp_value *reply)
{
    enum { AT_CONNECTIONS, AT_STARTED, AT_DRAINING, AT_PEER, ITEMS };
    struct fleet_gateway *gateway = arg;
    gateway->fleet->failed |= !reply || redis_problem_of(reply) != REDIS_FINE;
    if (reply && reply->type == RESP_ARRAY && reply->count == ITEMS &&
        reply->items[AT_STARTED].type == RESP_TEXT) {
        int64_t connections = 0;
        struct slice peer = reply->items[AT_PEER].text;
        resp_parse_integer(reply->items[AT_CONNECTIONS].text, &connections);
        gateway->info.connections = connections > 0 ? (size_t)connections : 0;
        time_text_parse(reply->items[AT_STARTED].text, &gateway->info.started_at_ms);
        gateway->info.draining = slice_is(reply->items[AT_DRAINING].text, "1");
        if (peer.len > 0 && peer.len <= sizeof(gateway->peer_address))
            gateway->info.peer_address =
                (struct slice){memcpy(gateway->peer_address, peer.data, peer.len), peer.len};
        gateway->has_record = true;
    }
    end_fleet_record(gateway->fleet);
}

static void read_fleet_record(struct fleet_read *fleet, struct fleet_gateway *gateway,
                              struct slice id)
{
    char text[REDIS_KEY_BYTES_MAX];
    gateway->fleet = fleet;
    if (id.len == 0 || id.len > sizeof(gateway->id))
        return;
    gateway->info.gateway_id = (struct slice){memcpy(gateway->id, id.data, id.len), id.len};
    struct slice key = redis_key_plain(text, "gateway:", id);
    fleet->waiting++;
    redis_command(fleet->state->options.client, key,
                  REDIS_ARGS(SLICE("HMGET"), key, SLICE("connections"), SLICE("started_at"),
                             SLICE("draining"), SLICE("peer_address")),
                  on_fleet_record_read, gateway);
}

static void on_fleet_list_read(void *arg, const struct resp_value *reply)
{
    struct fleet_read *fleet = arg;
    size_t count = redis_state_reply_is(reply, RESP_ARRAY) ? reply->count : 0;
    fleet->failed = !reply || reply->type != RESP_ARRAY;
    fleet->waiting = 1;
    fleet->gateways = count ? calloc(count, sizeof(*fleet->gateways)) : NULL;
    fleet->failed |= count && !fleet->gateways;
    fleet->count = fleet->gateways ? count : 0;
    for (size_t i = 0; i < fleet->count; i++)
        read_fleet_record(fleet, &fleet->gateways[i], reply->items[i].text);
    end_fleet_record(fleet);
}

void redis_state_gateways(struct state_store *store, state_gateways_done done, void *arg)
{
    struct fleet_read *fleet = malloc(sizeof(*fleet));
    char max[REDIS_STATE_NUMBER_MAX];
    if (!fleet) {
        done(arg, STATE_UNAVAILABLE, NULL, 0);
        return;
    }
    *fleet = (struct fleet_read){.state = redis_state_of(store), .done = done, .arg = arg};
    redis_state_begin(fleet->state);
    redis_state_eval(fleet->state, REDIS_STATE_GATEWAY_LIST,
                     REDIS_ARGS(REDIS_STATE_GATEWAY_SET, REDIS_STATE_GATEWAY_INFOS),
                     REDIS_ARGS(SLICE("list"), redis_state_number(max, REDIS_STATE_GATEWAYS_MAX)),
                     on_fleet_list_read, fleet);
}
