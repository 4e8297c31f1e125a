/*
 * PUT and DELETE /v1/service/contacts/{a}/{b}: makes or ends one contact.
 * PUT /v1/service/users/{user}/contacts {"contacts":[…]}: makes a user's contacts exactly these.
 *
 * The whole list is compared with what the ledger has: first the contacts that are too many end, then the missing ones are
 * made, LEDGER_RELATIONS_MAX at a time with others' writes in between. Each contact changes completely or not at all;
 * a call that failed in between is repeated and goes on.
 */
#include "api/service/relation_changes.h"
#include "api/service/service_routes.h"
#include "api/user_ids_json.h"

#include <stdlib.h>

/* ---- one contact ---- */

static void answer_refused_contact(struct exchange **exchange, enum ledger_status status)
{
    if (status == LEDGER_FORBIDDEN)
        exchange_error(exchange, 403, ERROR_FORBIDDEN, "one of the two has blocked the other");
    else if (status == LEDGER_LIMIT)
        exchange_error(exchange, 409, ERROR_INVALID_MESSAGE,
                       "one of the two has 10000 contacts, and no space for more");
    else
        api_ledger_error(exchange, status);
}

static void on_contact_changed(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct exchange *exchange = arg;
    enum ledger_status status =
        outcome->status == LEDGER_OK ? outcome->results[0].status : outcome->status;
    if (status == LEDGER_OK)
        exchange_reply_empty(&exchange);
    else
        answer_refused_contact(&exchange, status);
}

static void change_contact(struct exchange *exchange, enum ledger_relation_change change)
{
    struct slice pair[2];
    if (!service_read_user(&exchange, 0, &pair[0]) || !service_read_user(&exchange, 1, &pair[1]))
        return;
    if (slice_equal(pair[0], pair[1]))
        service_refuse(&exchange, "a user cannot be their own contact");
    else
        relation_changes_start(api_context_of(exchange)->sessions, change, pair, 1,
                               on_contact_changed, exchange);
}

void service_contact_put(struct exchange *exchange)
{
    change_contact(exchange, LEDGER_CONTACT_MAKE);
}

void service_contact_delete(struct exchange *exchange)
{
    change_contact(exchange, LEDGER_CONTACT_END);
}

/* ---- the whole list ---- */

struct contact_list {
    struct exchange *exchange;
    struct slice user;    /* in the exchange */
    struct slice *wanted; /* sorted; in the exchange's body */
    size_t wanted_count;
    struct id_list ending; /* contacts that are not wanted; owned */
    struct slice *missing; /* wanted users who are no contacts */
    size_t missing_count;
    size_t ended;   /* of `ending`: looked at */
    size_t made;    /* of `missing`: looked at */
    size_t removed; /* contacts */
    size_t added;
    struct buffer refused; /* JSON objects */
};

static const struct user_ids_problems CONTACT_PROBLEMS = {
    "contacts must be a list of user ids",
    "contacts must be user ids: 1 to 128 bytes, no control characters",
    "a user has at most 10000 contacts",
};

static void free_contact_list(struct contact_list *list)
{
    id_list_free(&list->ending);
    buffer_free(&list->refused);
    free(list->wanted);
    free(list->missing);
    free(list);
}

static void abandon_contact_list(struct contact_list *list, enum ledger_status status)
{
    api_ledger_error(&list->exchange, status);
    free_contact_list(list);
}

static void answer_contact_list(struct contact_list *list)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), list->user);
    json_write_key_int(&json, SLICE("added"), (int64_t)list->added);
    json_write_key_int(&json, SLICE("removed"), (int64_t)list->removed);
    json_write_key(&json, SLICE("refused"));
    json_write_raw(&json, buffer_slice(&list->refused));
    json_write_object_end(&json);
    json.failed |= list->refused.failed;
    exchange_reply_json(&list->exchange, 200, &json);
    free_contact_list(list);
}

static void note_refused_contact(struct contact_list *list, struct slice other,
                                 enum ledger_status status)
{
    json_write_object(&list->refused);
    json_write_key_string(&list->refused, SLICE("user_id"), other);
    json_write_key_string(&list->refused, SLICE("reason"),
                          status == LEDGER_FORBIDDEN ? SLICE("blocked")
                                                     : SLICE("too_many_contacts"));
    json_write_object_end(&list->refused);
}

static void advance_contact_list(struct contact_list *list);

static void on_list_contacts_ended(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct contact_list *list = arg;
    if (outcome->status != LEDGER_OK) {
        abandon_contact_list(list, outcome->status);
        return;
    }
    for (size_t i = 0; i < outcome->count; i++)
        list->removed += outcome->results[i].changed;
    list->ended += outcome->count;
    advance_contact_list(list);
}

static void on_list_contacts_made(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct contact_list *list = arg;
    if (outcome->status != LEDGER_OK) {
        abandon_contact_list(list, outcome->status);
        return;
    }
    for (size_t i = 0; i < outcome->count; i++) {
        list->added += outcome->results[i].changed;
        if (outcome->results[i].status != LEDGER_OK)
            note_refused_contact(list, list->missing[list->made + i], outcome->results[i].status);
    }
    list->made += outcome->count;
    advance_contact_list(list);
}

/* Changes the next slice: the user and each of `others`. */
static void change_list_slice(struct contact_list *list, enum ledger_relation_change change,
                              const struct slice *others, size_t count, relation_changes_done done)
{
    struct slice ids[2 * LEDGER_RELATIONS_MAX];
    if (count > LEDGER_RELATIONS_MAX)
        count = LEDGER_RELATIONS_MAX;
    for (size_t i = 0; i < count; i++) {
        ids[2 * i] = list->user;
        ids[2 * i + 1] = others[i];
    }
    relation_changes_start(api_context_of(list->exchange)->sessions, change, ids, count, done,
                           list);
}

static void advance_contact_list(struct contact_list *list)
{
    if (list->ended < list->ending.count)
        change_list_slice(list, LEDGER_CONTACT_END, list->ending.ids + list->ended,
                          list->ending.count - list->ended, on_list_contacts_ended);
    else if (list->made < list->missing_count)
        change_list_slice(list, LEDGER_CONTACT_MAKE, list->missing + list->made,
                          list->missing_count - list->made, on_list_contacts_made);
    else {
        json_write_array_end(&list->refused);
        answer_contact_list(list);
    }
}

/* Compares the list with the contacts as they are. Returns false when out of memory. */
static bool compare_contact_list(struct contact_list *list, const struct id_list *contacts)
{
    struct id_list wanted = {list->wanted, list->wanted_count};
    struct slice *ending = malloc((contacts->count + 1) * sizeof(*ending));
    size_t ending_count = 0;
    list->missing = malloc((list->wanted_count + 1) * sizeof(*list->missing));
    if (ending && list->missing) {
        for (size_t i = 0; i < contacts->count; i++)
            if (!id_list_sorted_contains(&wanted, contacts->ids[i]))
                ending[ending_count++] = contacts->ids[i];
        for (size_t i = 0; i < wanted.count; i++)
            if (!id_list_sorted_contains(contacts, wanted.ids[i]))
                list->missing[list->missing_count++] = wanted.ids[i];
    }
    bool made = ending && list->missing && id_list_copy(&list->ending, ending, ending_count);
    free(ending);
    return made;
}

static void on_list_contacts_read(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct contact_list *list = arg;
    if (outcome->status != LEDGER_OK ||
        !compare_contact_list(list, &(struct id_list){outcome->ids, outcome->count})) {
        abandon_contact_list(list,
                             outcome->status != LEDGER_OK ? outcome->status : LEDGER_UNAVAILABLE);
        return;
    }
    /* also if nothing changes: an earlier attempt may have dropped no cached graph */
    graph_reader_drop(&api_context_of(list->exchange)->sessions->presence->graphs, list->user);
    json_write_array(&list->refused);
    advance_contact_list(list);
}

/* Takes the ids. */
static void start_contact_list(struct exchange *exchange, struct slice user, struct slice *wanted,
                               size_t count)
{
    struct contact_list *list = calloc(1, sizeof(*list));
    if (!list) {
        free(wanted);
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    list->exchange = exchange;
    list->user = user;
    list->wanted = wanted;
    list->wanted_count = id_list_sort_unique(wanted, count);
    ledger_contacts_list(api_context_of(exchange)->sessions->ledger, user, on_list_contacts_read,
                         list);
}

void service_contacts_put(struct exchange *exchange)
{
    struct slice user;
    const char *problem;
    size_t count;
    if (!service_read_user(&exchange, 0, &user) || !api_read_json(&exchange))
        return;
    struct slice raw = fields_find(&api_context_of(exchange)->sessions->scratch, "contacts");
    struct slice *wanted =
        user_ids_json_read(raw, LEDGER_CONTACTS_MAX, &CONTACT_PROBLEMS, &count, &problem);
    if (wanted && id_list_contains(&(struct id_list){wanted, count}, user)) {
        free(wanted);
        service_refuse(&exchange, "a user cannot be their own contact");
    } else if (wanted) {
        start_contact_list(exchange, user, wanted, count);
    } else if (problem) {
        service_refuse(&exchange, problem);
    } else {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    }
}
