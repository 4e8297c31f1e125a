/*
 * GET /v1/friends: the user's contacts with the presence that they may see; ?status=online, ?in_call=true; paged
 * with ?limit= and ?after=, in the order of ids.
 *
 *   candidates ──presence query, a batch at a time──► those that pass the filter ──► page full, or no candidate left
 *
 * If only online users can pass the filter, the candidates are the online contacts from the graph, so that the cost
 * is that of the answer. Otherwise they are all contacts from the ledger.
 */
#include "api/api_routes.h"
#include "api/page_query.h"
#include "api/settings_json.h"
#include "base/id_list.h"
#include "contacts/graph_reader.h"
#include "presence/presence_query.h"

#include <stdlib.h>
#include <string.h>

enum { FRIENDS_PAGE = 1000, FRIENDS_BATCH_MAX = 250 };

struct friends_filter {
    bool by_status;
    enum presence_status status;
    bool by_call;
    bool in_call;
};

struct friends_listing {
    struct exchange *exchange;
    struct page_query page;
    struct friends_filter filter;
    struct id_list candidates; /* owned, sorted */
    size_t next;
    struct ledger_appearance appearances[FRIENDS_BATCH_MAX]; /* of the current batch */
    char *appearance_bytes;
    struct buffer json;
    size_t found;
    bool has_more;
};

static void query_next_friends(struct friends_listing *listing);

static size_t count_next_friends(const struct friends_listing *listing)
{
    size_t left = listing->candidates.count - listing->next;
    return left < FRIENDS_BATCH_MAX ? left : FRIENDS_BATCH_MAX;
}

static void free_friends_listing(struct friends_listing *listing)
{
    id_list_free(&listing->candidates);
    free(listing->appearance_bytes);
    buffer_free(&listing->json);
    free(listing);
}

static void abandon_friends_listing(struct friends_listing *listing)
{
    api_ledger_error(&listing->exchange, LEDGER_UNAVAILABLE);
    free_friends_listing(listing);
}

/* A presence, with the friend's name and picture. */
static void write_friend(struct friends_listing *listing, const struct presence *presence,
                         const struct ledger_appearance *appearance)
{
    struct buffer *json = &listing->json;
    json_write_object(json);
    fields_write_presence_fields(json, presence);
    settings_json_write_appearance(json, appearance);
    json_write_object_end(json);
}

static void on_friends_queried(void *arg, bool ok, const struct presence *presences, size_t count)
{
    struct friends_listing *listing = arg;
    const struct friends_filter *filter = &listing->filter;
    if (!ok) {
        abandon_friends_listing(listing);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if ((filter->by_status && presences[i].status != filter->status) ||
            (filter->by_call && presences[i].in_call != filter->in_call))
            continue;
        listing->has_more = listing->found == listing->page.limit;
        if (listing->has_more)
            break;
        write_friend(listing, &presences[i], &listing->appearances[i]);
        listing->found++;
    }
    query_next_friends(listing);
}

/* Copies the texts into one allocation. Without memory no friend has a name or a picture. */
static void keep_friend_appearances(struct friends_listing *listing,
                                    const struct ledger_appearance *appearances, size_t count)
{
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes += appearances[i].display_name.len + appearances[i].avatar_url.len;
    char *at = listing->appearance_bytes = malloc(bytes);
    for (size_t i = 0; at && i < count; i++) {
        listing->appearances[i].display_name = slice_copy_to(&at, appearances[i].display_name);
        listing->appearances[i].avatar_url = slice_copy_to(&at, appearances[i].avatar_url);
    }
}

/* Names and pictures are left out while the ledger does not answer. */
static void on_friend_appearances_read(void *arg, const struct ledger_appearances_outcome *outcome)
{
    struct friends_listing *listing = arg;
    struct exchange *exchange = listing->exchange;
    memset(listing->appearances, 0, sizeof(listing->appearances));
    free(listing->appearance_bytes);
    listing->appearance_bytes = NULL;
    if (outcome->status == LEDGER_OK)
        keep_friend_appearances(listing, outcome->appearances, outcome->count);
    const struct slice *batch = listing->candidates.ids + listing->next;
    size_t count = count_next_friends(listing);
    listing->next += count;
    presence_query(api_context_of(exchange)->sessions->presence, exchange_user(exchange), batch,
                   count,
                   &(struct presence_query_handler){.done = on_friends_queried, .arg = listing});
}

/* Queries the next batch, or answers when no candidate is left or another page is known to follow. */
static void query_next_friends(struct friends_listing *listing)
{
    size_t count = count_next_friends(listing);
    if (count == 0 || listing->has_more) {
        json_write_array_end(&listing->json);
        json_write_key_bool(&listing->json, SLICE("has_more"), listing->has_more);
        json_write_object_end(&listing->json);
        exchange_reply_json(&listing->exchange, 200, &listing->json);
        free_friends_listing(listing);
        return;
    }
    ledger_appearances(api_context_of(listing->exchange)->sessions->ledger,
                       listing->candidates.ids + listing->next, count, on_friend_appearances_read,
                       listing);
}

/* ---- candidates ---- */

/* Sorts the candidates by their bytes and skips those up to the page's start. */
static void take_friend_candidates(struct friends_listing *listing, const struct slice *ids,
                                   size_t count)
{
    struct id_list *candidates = &listing->candidates;
    struct slice after = listing->page.after;
    if (!id_list_copy(candidates, ids, count)) {
        abandon_friends_listing(listing);
        return;
    }
    id_list_sort(candidates);
    while (after.data && listing->next < candidates->count &&
           id_list_compare(candidates->ids[listing->next], after) <= 0)
        listing->next++;
    query_next_friends(listing);
}

static void on_friend_contacts_listed(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct friends_listing *listing = arg;
    if (outcome->status == LEDGER_OK)
        take_friend_candidates(listing, outcome->ids, outcome->count);
    else
        abandon_friends_listing(listing);
}

static void on_friend_graph_read(void *arg, const struct social_graph *graph)
{
    struct friends_listing *listing = arg;
    if (graph)
        take_friend_candidates(listing, graph->contacts.ids, graph->contacts.count);
    else
        abandon_friends_listing(listing);
}

/* ---- the request ---- */

/* Returns false when a parameter is invalid. */
static bool read_friends_filter(const struct exchange *exchange, struct friends_filter *filter)
{
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice query = exchange->head.target.query;
    struct slice value;
    *filter = (struct friends_filter){0};
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

void rest_friends_get(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct friends_listing *listing = calloc(1, sizeof(*listing));
    if (!listing) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    if (!read_friends_filter(exchange, &listing->filter)) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
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
    const struct friends_filter *filter = &listing->filter;
    bool only_online = (filter->by_call && filter->in_call) ||
                       (filter->by_status &&
                        (filter->status == PRESENCE_ONLINE || filter->status == PRESENCE_AWAY));
    if (only_online)
        graph_reader_read(&sessions->presence->graphs, exchange_user(exchange),
                          on_friend_graph_read, listing);
    else
        ledger_contacts_list(sessions->ledger, exchange_user(exchange), on_friend_contacts_listed,
                             listing);
}
