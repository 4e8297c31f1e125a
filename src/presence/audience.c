#include "presence/audience.h"

#include "base/container.h"
#include "chats/chat_event.h"
#include "contacts/graph_load.h"
#include "presence/change_source.h"
#include "presence/presence_event.h"
#include "presence/presence_plane.h"
#include "presence/push.h"
#include "presence/visibility/privacy.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

/* A question under way: asked of the cache, or on the list of the load it waits for. */
struct question {
    struct question *next; /* that waits for the same load */
    struct presence_plane *plane;
    void (*done)(void *arg, const struct social_graph *graph);
    void *arg;
    uint64_t alone_ticket;     /* of the reading that found nobody around the user */
    struct social_graph alone; /* that reading: settings, and no ids */
    bool is_alone;
    uint8_t attempts;
    uint8_t user_id_len;
    char user_id[];
};

/* One user's graph being read. */
struct load {
    struct table_node node;
    struct presence_plane *plane;
    struct question *oldest;
    struct question *newest;
    size_t question_count;
    uint64_t ticket;
    bool refreshes; /* a graph that is known, but aged */
    uint8_t user_id_len;
    char user_id[];
};

static struct slice load_user(const struct load *load)
{
    return (struct slice){load->user_id, load->user_id_len};
}

static bool load_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(load_user(CONTAINER_OF(node, struct load, node)), key);
}

bool audience_init(struct audience *audience, struct graph_store *graphs, uint64_t hash_seed)
{
    *audience = (struct audience){.graphs = graphs};
    return table_init(&audience->loads, hash_seed, load_matches);
}

/* By now the ledger has answered, or given up on, all that was asked of it. */
void audience_free(struct audience *audience)
{
    table_free(&audience->loads);
    graph_store_free(&audience->graphs);
}

bool audience_idle(const struct audience *audience)
{
    return audience->loads.size == 0 && audience->asking == 0;
}

/* ---- asking ---- */

static void answer(struct question *question, const struct social_graph *graph)
{
    if (!graph)
        metrics_count(question->plane->metrics, METRIC_FRIENDS_SKIPPED);
    question->done(question->arg, graph);
    free(question);
}

static void ask_cache(struct question *question);

/* The oldest question that waits; NULL: none. */
static struct question *take_oldest(struct load *load)
{
    struct question *oldest = load->oldest;
    if (oldest) {
        load->oldest = oldest->next;
        load->question_count--;
    }
    return oldest;
}

/* A graph that was known became one of nobody. */
static void forget_alone(struct load *load)
{
    if (load->refreshes)
        graph_drop(load->plane->audience.graphs, load_user(load));
}

/* A graph with nobody in it is not kept: every user without contacts would pay for it, and reading it
 * again costs the ledger one look. It answers those who asked, if nothing has changed since. */
static bool is_alone(const struct social_graph *graph)
{
    return graph->contacts.count + graph->blocked.count + graph->chats.count == 0;
}

static void loaded(void *arg, const struct social_graph *graph)
{
    struct load *load = arg;
    struct audience *audience = &load->plane->audience;
    struct question *question;
    bool alone = graph && is_alone(graph);
    if (alone)
        forget_alone(load);
    else if (graph)
        graph_put(audience->graphs, load_user(load), load->ticket, graph);
    table_remove(&audience->loads, &load->node);
    while ((question = take_oldest(load)) != NULL) {
        question->is_alone = alone;
        question->alone_ticket = load->ticket;
        question->alone =
            (struct social_graph){.presence_visibility = alone ? graph->presence_visibility : 0,
                                  .last_seen_visibility = alone ? graph->last_seen_visibility : 0};
        if (graph && ++question->attempts < AUDIENCE_ATTEMPTS_MAX)
            ask_cache(question);
        else
            answer(question, NULL);
    }
    free(load);
}

static struct load *find_load(struct presence_plane *plane, struct slice user_id)
{
    struct table_node *node = table_find(&plane->audience.loads, user_id);
    return node ? CONTAINER_OF(node, struct load, node) : NULL;
}

static void wait_for(struct load *load, struct question *question)
{
    if (load->question_count == AUDIENCE_WAITING_MAX)
        answer(take_oldest(load), NULL);
    if (load->oldest)
        load->newest->next = question;
    else
        load->oldest = question;
    load->newest = question;
    question->next = NULL;
    load->question_count++;
}

/* Begins to read a graph; NULL: there is no room. Those who are to wait must do so before it is sent. */
static struct load *make_load(struct presence_plane *plane, struct slice user_id, uint64_t ticket)
{
    struct load *load = NULL;
    if (plane->audience.loads.size < AUDIENCE_LOADS_MAX)
        load = malloc(sizeof(*load) + user_id.len);
    if (!load)
        return NULL;
    *load = (struct load){.plane = plane, .ticket = ticket, .user_id_len = (uint8_t)user_id.len};
    memcpy(load->user_id, user_id.data, user_id.len);
    table_insert(&plane->audience.loads, &load->node, load_user(load));
    metrics_count(plane->metrics, METRIC_GRAPH_MISSES);
    return load;
}

static void send_load(struct load *load)
{
    graph_load(load->plane->ledger, load_user(load), loaded, load);
}

/* The question waits for a load that is under way, or begins one. */
static void load_graph(struct question *question, uint64_t ticket)
{
    struct slice user_id = {question->user_id, question->user_id_len};
    struct load *load = find_load(question->plane, user_id);
    if (load) {
        wait_for(load, question);
        return;
    }
    load = make_load(question->plane, user_id, ticket);
    if (!load) {
        answer(question, NULL);
        return;
    }
    wait_for(load, question);
    send_load(load);
}

/* Nobody waits for it: what is cached serves until it is there, and if the ledger cannot tell, longer. */
static void refresh(struct presence_plane *plane, struct slice user_id, uint64_t ticket)
{
    struct load *load = find_load(plane, user_id) ? NULL : make_load(plane, user_id, ticket);
    if (!load)
        return;
    load->refreshes = true;
    send_load(load);
}

static void heard(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct question *question = arg;
    question->plane->audience.asking--;
    if (status != STATE_OK) {
        answer(question, NULL);
    } else if (audience->known) {
        metrics_count(question->plane->metrics, METRIC_GRAPH_HITS);
        if (audience->aged)
            refresh(question->plane, (struct slice){question->user_id, question->user_id_len},
                    audience->ticket);
        answer(question, &audience->graph);
    } else if (question->is_alone && question->alone_ticket == audience->ticket) {
        answer(question, &question->alone);
    } else {
        load_graph(question, audience->ticket);
    }
}

static void ask_cache(struct question *question)
{
    question->plane->audience.asking++;
    graph_lookup(question->plane->audience.graphs,
                 (struct slice){question->user_id, question->user_id_len}, heard, question);
}

void audience_ask(struct presence_plane *plane, struct slice user_id,
                  void (*done)(void *arg, const struct social_graph *graph), void *arg)
{
    struct question *question =
        plane->audience.graphs ? malloc(sizeof(*question) + user_id.len) : NULL;
    if (!question) {
        done(arg, NULL);
        return;
    }
    *question = (struct question){
        .plane = plane, .done = done, .arg = arg, .user_id_len = (uint8_t)user_id.len};
    memcpy(question->user_id, user_id.data, user_id.len);
    struct load *load = find_load(plane, user_id);
    if (load && load->oldest)
        wait_for(load, question);
    else
        ask_cache(question); /* a refresh nobody waits for keeps nobody waiting */
}

void audience_drop(struct presence_plane *plane, struct slice user_id)
{
    if (plane->audience.graphs)
        graph_drop(plane->audience.graphs, user_id);
}

/* ---- telling ---- */

void audience_tell_chats(struct presence_plane *plane, const struct id_list *chats,
                         const struct presence_change *change, const struct id_list *except,
                         const struct id_list *except_too)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    struct buffer payload = BUFFER_INIT;
    if (chats->count == 0)
        return;
    json_write_object(&payload);
    presence_event_write_change(&payload, change);
    json_write_key(&payload, SLICE("except"));
    json_write_array(&payload);
    for (size_t i = 0; i < except->count; i++)
        json_write_string(&payload, except->ids[i]);
    for (size_t i = 0; i < except_too->count; i++)
        json_write_string(&payload, except_too->ids[i]);
    json_write_array_end(&payload);
    json_write_object_end(&payload);
    for (size_t i = 0; !payload.failed && i < chats->count && i < AUDIENCE_CHATS_MAX; i++)
        bus_publish(plane->bus, chat_topic_name(name, chats->ids[i], CHAT_TOPIC_PRESENCE),
                    buffer_slice(&payload));
    buffer_free(&payload);
}

/* A change of presence on its way; it outlives the transition that made it. */
struct telling {
    struct presence_plane *plane;
    struct presence_change change;
    char user_id[];
};

/* The rooms in which contacts are told that somebody came or went. Of one who is in very many, contacts
 * hear it as contacts only. */
static struct id_list rooms_of(const struct social_graph *graph, enum presence_news news)
{
    bool told = change_source_is_for_rooms(news) && graph->chats.count <= AUDIENCE_ROOMS_MAX;
    return told ? graph->chats : (struct id_list){0};
}

/* Where contacts see when somebody was last seen and others do not, the chats' version, which says
 * less, must not reach them first. */
static void tell_graph(struct telling *telling, const struct social_graph *graph)
{
    struct ledger_settings settings = {(enum ledger_visibility)graph->presence_visibility,
                                       (enum ledger_visibility)graph->last_seen_visibility};
    struct presence_change change = telling->change;
    struct privacy_decision contact = privacy_of_contact(&settings);
    struct privacy_decision stranger = privacy_of_stranger(&settings);
    const struct id_list none = {0};
    int64_t wall_ms = telling->plane->clock->wall_ms;
    if (contact.view == PRIVACY_HIDDEN)
        return;
    change.presence = privacy_apply(&telling->change.presence, contact, wall_ms);
    push_send(telling->plane, &graph->contacts,
              &(struct push){.change = change, .chats = rooms_of(graph, change.news)});
    if (stranger.view == PRIVACY_HIDDEN)
        return;
    change.presence = privacy_apply(&telling->change.presence, stranger, wall_ms);
    audience_tell_chats(telling->plane, &graph->chats, &change, &graph->blocked,
                        stranger.view == contact.view ? &none : &graph->contacts);
}

static void tell(void *arg, const struct social_graph *graph)
{
    struct telling *telling = arg;
    if (graph)
        tell_graph(telling, graph);
    free(telling);
}

void audience_tell(struct presence_plane *plane, const struct presence_change *change)
{
    struct slice user_id = change->presence.user_id;
    if (!plane->audience.graphs)
        return;
    graph_set_online(plane->audience.graphs, user_id, change->presence.status != PRESENCE_OFFLINE,
                     change->presence.version);
    struct telling *telling = malloc(sizeof(*telling) + user_id.len);
    if (!telling)
        return;
    *telling = (struct telling){.plane = plane, .change = *change};
    memcpy(telling->user_id, user_id.data, user_id.len);
    telling->change.presence.user_id.data = telling->user_id;
    audience_ask(plane, user_id, tell, telling);
}
