#include "contacts/graph_reader.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>

/* One read: pending in the graph store, or on the list of the load it waits for. */
struct graph_read {
    struct graph_read *next; /* waits for the same load */
    struct graph_reader *reader;
    graph_reader_done done;
    void *arg;
    uint64_t empty_ticket;           /* of the load that returned an empty graph */
    struct social_graph empty_graph; /* that graph: settings and no ids */
    bool has_empty_graph;
    uint8_t attempts;
    uint8_t user_id_len;
    char user_id[];
};

/* One user's graph on its way from the ledger. */
struct graph_load {
    struct table_node node;
    struct graph_reader *reader;
    struct graph_read *oldest;
    struct graph_read *newest;
    size_t read_count;
    uint64_t ticket;
    bool refreshes; /* an aged graph is cached and used meanwhile */
    uint8_t user_id_len;
    char user_id[];
};

static struct slice graph_load_user(const struct graph_load *load)
{
    return (struct slice){load->user_id, load->user_id_len};
}

static struct slice graph_read_user(const struct graph_read *read)
{
    return (struct slice){read->user_id, read->user_id_len};
}

static bool graph_load_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(graph_load_user(CONTAINER_OF(node, struct graph_load, node)), key);
}

bool graph_reader_init(struct graph_reader *reader, struct graph_store *store,
                       struct ledger_client *ledger, struct metrics *metrics, uint64_t hash_seed)
{
    *reader = (struct graph_reader){.store = store, .ledger = ledger, .metrics = metrics};
    return table_init(&reader->loads, hash_seed, graph_load_matches);
}

void graph_reader_free(struct graph_reader *reader)
{
    table_free(&reader->loads);
    graph_store_free(&reader->store);
}

bool graph_reader_is_idle(const struct graph_reader *reader)
{
    return reader->loads.size == 0 && reader->pending == 0;
}

static void graph_read_finish(struct graph_read *read, const struct social_graph *graph)
{
    if (!graph)
        metrics_count(read->reader->metrics, METRIC_FRIENDS_SKIPPED);
    read->done(read->arg, graph);
    free(read);
}

/* ---- loads from the ledger ---- */

static void graph_read_from_store(struct graph_read *read);

/* Returns the read that has waited longest; NULL: none waits. */
static struct graph_read *graph_load_take_oldest(struct graph_load *load)
{
    struct graph_read *oldest = load->oldest;
    if (oldest) {
        load->oldest = oldest->next;
        load->read_count--;
    }
    return oldest;
}

/* Stores the graph and lets the reads that waited read the store again. */
static void on_graph_loaded(void *arg, const struct ledger_graph_outcome *outcome)
{
    struct graph_load *load = arg;
    struct graph_reader *reader = load->reader;
    struct social_graph graph = {
        .presence_visibility = (uint8_t)outcome->settings.presence,
        .last_seen_visibility = (uint8_t)outcome->settings.last_seen,
        .contacts = outcome->contacts,
        .blocked = outcome->blocked,
        .blocked_by = outcome->blocked_by,
        .chats = outcome->chats,
    };
    bool loaded = outcome->status == LEDGER_OK;
    bool empty = loaded && graph.contacts.count + graph.blocked.count + graph.blocked_by.count +
                                   graph.chats.count ==
                               0;
    if (loaded && !empty)
        graph_put(reader->store, graph_load_user(load), load->ticket, &graph);
    else if (empty && load->refreshes) /* the user lost the last contact */
        graph_drop(reader->store, graph_load_user(load));
    table_remove(&reader->loads, &load->node);
    for (struct graph_read *read; (read = graph_load_take_oldest(load)) != NULL;) {
        read->has_empty_graph = empty;
        read->empty_ticket = load->ticket;
        read->empty_graph =
            (struct social_graph){.presence_visibility = graph.presence_visibility,
                                  .last_seen_visibility = graph.last_seen_visibility};
        if (loaded && ++read->attempts < GRAPH_READER_ATTEMPTS_MAX)
            graph_read_from_store(read);
        else
            graph_read_finish(read, NULL);
    }
    free(load);
}

static struct graph_load *graph_load_find(struct graph_reader *reader, struct slice user_id)
{
    struct table_node *node = table_find(&reader->loads, user_id);
    return node ? CONTAINER_OF(node, struct graph_load, node) : NULL;
}

/* Makes a load, which is not sent yet, so that reads can join it first. NULL: too many, or no memory. */
static struct graph_load *graph_load_make(struct graph_reader *reader, struct slice user_id,
                                          uint64_t ticket)
{
    struct graph_load *load = NULL;
    if (reader->loads.size < GRAPH_READER_LOADS_MAX)
        load = malloc(sizeof(*load) + user_id.len);
    if (!load)
        return NULL;
    *load = (struct graph_load){
        .reader = reader, .ticket = ticket, .user_id_len = (uint8_t)user_id.len};
    memcpy(load->user_id, user_id.data, user_id.len);
    table_insert(&reader->loads, &load->node, graph_load_user(load));
    metrics_count(reader->metrics, METRIC_GRAPH_MISSES);
    return load;
}

static void graph_load_join(struct graph_load *load, struct graph_read *read)
{
    if (load->read_count == GRAPH_READER_WAITING_MAX)
        graph_read_finish(graph_load_take_oldest(load), NULL);
    if (load->oldest)
        load->newest->next = read;
    else
        load->oldest = read;
    load->newest = read;
    read->next = NULL;
    load->read_count++;
}

/* The read joins a pending load, or starts one. */
static void graph_read_from_ledger(struct graph_read *read, uint64_t ticket)
{
    struct graph_load *load = graph_load_find(read->reader, graph_read_user(read));
    if (load) {
        graph_load_join(load, read);
        return;
    }
    load = graph_load_make(read->reader, graph_read_user(read), ticket);
    if (!load) {
        graph_read_finish(read, NULL);
        return;
    }
    graph_load_join(load, read);
    ledger_graph(load->reader->ledger, graph_load_user(load), GRAPH_READER_CHATS_MAX,
                 on_graph_loaded, load);
}

/* ---- reads ---- */

/* An aged graph is loaded again. No read waits for that: the cached graph is used until the load succeeds. */
static void on_graph_read(void *arg, enum state_status status, const struct graph_lookup *cached)
{
    struct graph_read *read = arg;
    struct slice user_id = graph_read_user(read);
    read->reader->pending--;
    if (status != STATE_OK) {
        graph_read_finish(read, NULL);
    } else if (cached->known) {
        metrics_count(read->reader->metrics, METRIC_GRAPH_HITS);
        struct graph_load *load = NULL;
        if (cached->aged && !graph_load_find(read->reader, user_id))
            load = graph_load_make(read->reader, user_id, cached->ticket);
        if (load) {
            load->refreshes = true;
            ledger_graph(load->reader->ledger, graph_load_user(load), GRAPH_READER_CHATS_MAX,
                         on_graph_loaded, load);
        }
        graph_read_finish(read, &cached->graph);
    } else if (read->has_empty_graph && read->empty_ticket == cached->ticket) {
        graph_read_finish(read, &read->empty_graph);
    } else {
        graph_read_from_ledger(read, cached->ticket);
    }
}

static void graph_read_from_store(struct graph_read *read)
{
    read->reader->pending++;
    graph_lookup(read->reader->store, graph_read_user(read), on_graph_read, read);
}

void graph_reader_read(struct graph_reader *reader, struct slice user_id, graph_reader_done done,
                       void *arg)
{
    struct graph_read *read = reader->store ? malloc(sizeof(*read) + user_id.len) : NULL;
    if (!read) {
        done(arg, NULL);
        return;
    }
    *read = (struct graph_read){
        .reader = reader, .done = done, .arg = arg, .user_id_len = (uint8_t)user_id.len};
    memcpy(read->user_id, user_id.data, user_id.len);
    struct graph_load *load = graph_load_find(reader, user_id);
    if (load && load->oldest)
        graph_load_join(load, read);
    else
        graph_read_from_store(read); /* does not wait for a mere refresh */
}

void graph_reader_drop(struct graph_reader *reader, struct slice user_id)
{
    if (reader->store)
        graph_drop(reader->store, user_id);
}
