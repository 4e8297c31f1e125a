/*
 * GET /v1/friends: one's contacts with their presence, as privacy shows it; ?status=online, ?in_call=true;
 * paged with ?limit= and ?after=, in the order of ids.
 *
 *   candidates ──a batch at a time, looked at with the viewer's eyes──► those that fit ──► page full, or
 *   no candidate left
 *
 * The candidates of a filter that only somebody online can pass are the contacts who are online, from
 * the graph; so such a list costs what its answer costs. Else they are all contacts, from the ledger.
 */
#include "api/api_routes.h"
#include "api/page_query.h"
#include "base/id_list.h"
#include "contacts/graph_reader.h"
#include "presence/presence_query.h"

#include <stdlib.h>
#include <string.h>

enum { FRIENDS_PAGE = 1000, FRIENDS_LOOK_MAX = 250 };

struct filter {
    bool by_status;
    enum presence_status status;
    bool by_call;
    bool in_call;
};

struct listing {
    struct exchange *exchange;
    struct page_query page;
    struct filter filter;
    struct id_list candidates; /* owned, sorted */
    size_t next;
    struct buffer json;
    size_t found;
    bool has_more;
};

static void look(struct listing *listing);

static void free_listing(struct listing *listing)
{
    id_list_free(&listing->candidates);
    buffer_free(&listing->json);
    free(listing);
}

static void give_up(struct listing *listing)
{
    rest_ledger_error(&listing->exchange, LEDGER_UNAVAILABLE);
    free_listing(listing);
}

static bool passes(const struct filter *filter, const struct presence *presence)
{
    return (!filter->by_status || presence->status == filter->status) &&
           (!filter->by_call || presence->in_call == filter->in_call);
}

static void finish(struct listing *listing)
{
    json_write_array_end(&listing->json);
    json_write_key_bool(&listing->json, SLICE("has_more"), listing->has_more);
    json_write_object_end(&listing->json);
    exchange_reply_json(&listing->exchange, 200, &listing->json);
    free_listing(listing);
}

static void looked(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct listing *listing = arg;
    if (!ok) {
        give_up(listing);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!passes(&listing->filter, &presences[i]))
            continue;
        listing->has_more = listing->found == listing->page.limit;
        if (listing->has_more)
            break;
        fields_write_presence(&listing->json, &presences[i]);
        listing->found++;
    }
    look(listing);
}

/* The next batch; the answer when there is none, or when the page is known to have a next one. */
static void look(struct listing *listing)
{
    struct exchange *exchange = listing->exchange;
    size_t left = listing->candidates.count - listing->next;
    size_t count = left < FRIENDS_LOOK_MAX ? left : FRIENDS_LOOK_MAX;
    if (count == 0 || listing->has_more) {
        finish(listing);
        return;
    }
    const struct slice *batch = listing->candidates.ids + listing->next;
    listing->next += count;
    presence_query(rest_of(exchange)->handlers->presence, exchange_user(exchange), batch, count,
                   &(struct presence_query_handler){.done = looked, .arg = listing});
}

/* ---- candidates ---- */

/* Sorts the candidates by their bytes and skips those up to the page's start. */
static void take_candidates(struct listing *listing, const struct slice *ids, size_t count)
{
    struct id_list *candidates = &listing->candidates;
    struct slice after = listing->page.after;
    if (!id_list_copy(candidates, ids, count)) {
        give_up(listing);
        return;
    }
    id_list_sort(candidates);
    while (after.data && listing->next < candidates->count &&
           id_list_compare(candidates->ids[listing->next], after) <= 0)
        listing->next++;
    look(listing);
}

static void contacts_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct listing *listing = arg;
    if (outcome->status == LEDGER_OK)
        take_candidates(listing, outcome->ids, outcome->count);
    else
        give_up(listing);
}

static void graph_known(void *arg, const struct social_graph *graph)
{
    struct listing *listing = arg;
    if (graph)
        take_candidates(listing, graph->contacts.ids, graph->contacts.count);
    else
        give_up(listing);
}

/* ---- the request ---- */

/* False: a parameter is there and wrong. */
static bool read_filter(const struct exchange *exchange, struct filter *filter)
{
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice query = exchange->head.target.query;
    struct slice value;
    *filter = (struct filter){0};
    filter->by_status = http1_query_find(query, SLICE("status")).data != NULL;
    if (filter->by_status &&
        (!exchange_query(exchange, SLICE("status"), text, sizeof(text), &value) ||
         !presence_status_parse(value, &filter->status)))
        return false;
    filter->by_call = http1_query_find(query, SLICE("in_call")).data != NULL;
    if (!filter->by_call)
        return true;
    if (!exchange_query(exchange, SLICE("in_call"), text, sizeof(text), &value))
        return false;
    filter->in_call = slice_is(value, "true");
    return filter->in_call || slice_is(value, "false");
}

static bool needs_online(const struct filter *filter)
{
    return (filter->by_call && filter->in_call) ||
           (filter->by_status &&
            (filter->status == PRESENCE_ONLINE || filter->status == PRESENCE_AWAY));
}

void rest_friends_get(struct exchange *exchange)
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    struct listing *listing = calloc(1, sizeof(*listing));
    if (!listing || !read_filter(exchange, &listing->filter)) {
        exchange_error(&exchange, listing ? 400 : 503,
                       listing ? ERROR_INVALID_MESSAGE : ERROR_SERVICE_UNAVAILABLE,
                       "status is online, away, offline or unknown, and in_call is true or false");
        free(listing);
        return;
    }
    if (!page_query_read(&exchange, FRIENDS_PAGE, &listing->page)) {
        free(listing);
        return;
    }
    listing->exchange = exchange;
    json_write_object(&listing->json);
    json_write_key(&listing->json, SLICE("friends"));
    json_write_array(&listing->json);
    if (needs_online(&listing->filter))
        graph_reader_read(&handlers->presence->graphs, exchange_user(exchange), graph_known,
                          listing);
    else
        ledger_contacts_list(handlers->ledger, exchange_user(exchange), contacts_listed, listing);
}
