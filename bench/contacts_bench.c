/*
 * Measures the cost of finding the recipients of a user's change:
 *
 *     contacts_bench [rounds]
 *
 * One user has a number of contacts, of whom a share is online on four gateways. A round is the work of a gateway
 * between a transition and its publishing: it reads the audience from the graph cache, finds the gateways
 * of the audience, and writes one push per gateway. Times are processor times. The sockets are left out, since
 * they cost the same for every delivery; `bench/contacts` measures everything.
 */
#include "store/memory/memory_graph.h"
#include "store/memory/state/memory_state.h"
#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CONTACTS_MAX = 5000, ID_BYTES_MAX = 24, GATEWAYS = 4, ROUNDS = 20000 };

struct fixture {
    struct clock clock;
    struct memory_state *memory_state;
    struct state_store *state;
    struct memory_graphs *graphs;
    struct graph_store *store;
    char texts[CONTACTS_MAX][ID_BYTES_MAX];
    struct slice contacts[CONTACTS_MAX];
    size_t recipients;
    size_t bytes;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void on_lease_opened(void *arg, enum state_status status,
                            const struct state_transition *transition)
{
    (void)arg, (void)status, (void)transition;
}

static void bring_online(struct fixture *fixture, size_t count, unsigned percent)
{
    static const struct slice gateways[GATEWAYS] = {
        {"gw-0", 4}, {"gw-1", 4}, {"gw-2", 4}, {"gw-3", 4}};
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(fixture->texts[i], ID_BYTES_MAX, "contact-%zu", i);
        fixture->contacts[i] = (struct slice){fixture->texts[i], (size_t)len};
        if (i * percent % 100 >= percent) /* spread them evenly */
            continue;
        struct lease lease = {.user_id = fixture->contacts[i],
                              .gateway_id = gateways[i % GATEWAYS]};
        memcpy(lease.conn_id.bytes, &i, sizeof(i));
        state_open(fixture->state, &lease, on_lease_opened, NULL);
    }
}

static void on_graph_missing(void *arg, enum state_status status,
                             const struct graph_lookup *audience)
{
    struct fixture *fixture = arg;
    if (status != STATE_OK || audience->known)
        abort();
    fixture->bytes = audience->ticket;
}

static void make_fixture(struct fixture *fixture, size_t count, unsigned percent)
{
    *fixture = (struct fixture){.clock = {1, 1700000000000}};
    fixture->memory_state = memory_state_make(&(struct memory_state_options){
        .lease_window_ms = 60000, .offline_records_max = 100000, .hash_seed = 7});
    fixture->graphs = memory_graphs_make(&(struct memory_graphs_options){
        .contacts_total_max = MEMORY_GRAPH_CONTACTS_TOTAL_MAX, .hash_seed = 7});
    fixture->state = memory_state_store(fixture->memory_state, &fixture->clock);
    fixture->store = memory_graphs_store(fixture->graphs, fixture->state, &fixture->clock);
    bring_online(fixture, count, percent);
    graph_lookup(fixture->store, SLICE("user"), on_graph_missing, fixture);
    graph_put(fixture->store, SLICE("user"), fixture->bytes,
              &(struct social_graph){.contacts = {fixture->contacts, count}});
}

static void free_fixture(struct fixture *fixture)
{
    graph_store_free(&fixture->store);
    memory_graphs_free(&fixture->graphs);
    state_store_free(&fixture->state);
    memory_state_free(&fixture->memory_state);
}

static void on_routes_found(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct fixture *fixture = arg;
    if (status != STATE_OK)
        abort();
    for (size_t i = 0; i < routes->count; i++) {
        const struct state_route *route = &routes->items[i];
        struct buffer text = BUFFER_INIT;
        json_write_object(&text);
        json_write_key(&text, SLICE("users"));
        json_write_array(&text);
        for (size_t j = 0; j < route->count; j++)
            json_write_string(&text, route->users[j]);
        json_write_array_end(&text);
        json_write_object_end(&text);
        fixture->recipients += route->count;
        fixture->bytes += text.len;
        buffer_free(&text);
    }
}

static void on_graph_found(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct fixture *fixture = arg;
    if (status != STATE_OK || !audience->known)
        abort();
    state_routes(fixture->state, audience->graph.contacts.ids, audience->graph.contacts.count,
                 on_routes_found, fixture);
}

static void count_audience(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    if (status != STATE_OK || !audience->known)
        abort();
    ((struct fixture *)arg)->recipients += audience->graph.contacts.count;
}

static double measure(struct fixture *fixture, long rounds, graph_lookup_done done)
{
    fixture->recipients = 0;
    double start = seconds();
    for (long i = 0; i < rounds; i++)
        graph_lookup(fixture->store, SLICE("user"), done, fixture);
    return (seconds() - start) / (double)rounds;
}

int main(int argc, char **argv)
{
    static struct fixture fixture;
    static const size_t contacts[] = {10, 500, 5000};
    static const unsigned percents[] = {1, 50};
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    if (rounds < 1)
        return EXIT_FAILURE;
    printf("| contacts | online | audience | all of it | a delivery |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(contacts) / sizeof(contacts[0]); i++)
        for (size_t j = 0; j < sizeof(percents) / sizeof(percents[0]); j++) {
            make_fixture(&fixture, contacts[i], percents[j]);
            double audience = measure(&fixture, rounds, count_audience);
            double all = measure(&fixture, rounds / 10 + 1, on_graph_found);
            size_t online = fixture.recipients / (size_t)(rounds / 10 + 1);
            printf("| %zu | %zu | %.2f µs | %.2f µs | %.0f ns |\n", contacts[i], online,
                   audience * 1e6, all * 1e6, online ? all * 1e9 / (double)online : 0);
            free_fixture(&fixture);
        }
    return EXIT_SUCCESS;
}
