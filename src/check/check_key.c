#include "check/check_key.h"

#include "check/check_scripts.h"

#include <stdio.h>
#include <stdlib.h>

/* The fields of a script's answer before its rows, and of a row before its command. */
enum { ANSWER_NEXT, ANSWER_USERS, ANSWER_CONNECTIONS, ANSWER_ROWS };
enum { ROW_INVARIANT, ROW_WHAT, ROW_EXPECTED, ROW_KEY, ROW_COMMAND };

enum { NUMBER_BYTES = 24, COMMAND_ARGUMENTS_MAX = 8, SHARD_LEN = REDIS_SLOT_TAG_LEN + 3 };

struct key_kind {
    const char *prefix; /* of the keys */
    const char *script;
    const char *type; /* this and the rest are for CHECK_SCRIPT_PLAIN */
    const char *ttl_ms_max;
    const char *value;
};

/* A prefix that begins with another prefix comes before it. */
static const struct key_kind KEY_KINDS[] = {
    {.prefix = "connection:", .script = CHECK_SCRIPT_CONNECTION},
    {.prefix = "user_connections:", .script = CHECK_SCRIPT_USER},
    {.prefix = "user_servers:", .script = CHECK_SCRIPT_USER},
    {.prefix = "user_presence:", .script = CHECK_SCRIPT_USER},
    {.prefix = "server_connections:", .script = CHECK_SCRIPT_SERVER},
    {.prefix = "gateway:", .script = CHECK_SCRIPT_GATEWAY},
    {.prefix = "presence:v_heartbeat", .script = CHECK_SCRIPT_INDEX},
    {.prefix = "presence:untold", .script = CHECK_SCRIPT_INDEX},
    {.prefix = "presence:online", .script = CHECK_SCRIPT_ONLINE_SETS},
    {.prefix = "presence:incall", .script = CHECK_SCRIPT_ONLINE_SETS},
    {.prefix = "call:", .script = CHECK_SCRIPT_CALL},
    {.prefix = "calls:due", .script = CHECK_SCRIPT_INDEX},
    {"user_lease_counts:", CHECK_SCRIPT_PLAIN, "hash", "172800000", ""},
    {"user_leases:", CHECK_SCRIPT_PLAIN, "zset", "", ""},
    {"last_seen:", CHECK_SCRIPT_PLAIN, "string", "", "time"},
    {"presence_visibility:", CHECK_SCRIPT_PLAIN, "string", "300000", "visibility"},
    {"presence_history:", CHECK_SCRIPT_PLAIN, "list", "3600000", ""},
    {"connection_user:", CHECK_SCRIPT_PLAIN, "string", "3600000", ""},
    {"typing:r:", CHECK_SCRIPT_PLAIN, "hash", "3600000", ""},
    {"typing_pace:", CHECK_SCRIPT_PLAIN, "string", "3600000", ""},
    {"user:", CHECK_SCRIPT_PLAIN, "", "86400000", "graph"},
};

/* The check of one key in progress. */
struct key_check {
    struct check_context *context;
    const struct key_kind *kind;
    size_t key_len;
    char key[];
};

/* A suspicion that the value of another key can refute. */
struct suspicion {
    struct key_check *check; /* owned */
    char *invariant;
    char *what;
    char *expected;
};

void check_fail(struct check_context *context, const struct resp_value *reply)
{
    if (context->failed)
        return;
    context->failed = true;
    enum redis_problem problem = redis_client_problem(context->redis->client);
    if (!reply)
        snprintf(context->why, sizeof(context->why), "%s",
                 problem == REDIS_FINE ? "no answer" : redis_problem_text(problem));
    else
        snprintf(context->why, sizeof(context->why), "it answered: %.*s",
                 SLICE_FORMAT(slice_first(reply->text, 200)));
}

static struct key_check *make_key_check(struct check_context *context, const struct key_kind *kind,
                                        struct slice key)
{
    struct key_check *check = malloc(sizeof(*check) + key.len);
    if (!check)
        return NULL;
    *check = (struct key_check){.context = context, .kind = kind, .key_len = key.len};
    memcpy(check->key, key.data, key.len);
    return check;
}

static struct slice checked_key(const struct key_check *check)
{
    return (struct slice){check->key, check->key_len};
}

/* ---- suspicions that another key can refute ---- */

static void free_suspicion(struct suspicion *suspicion)
{
    free(suspicion->check);
    free(suspicion->invariant);
    free(suspicion->what);
    free(suspicion->expected);
    free(suspicion);
}

/* PUBSUB answers with alternating names and numbers: the last item is the number. */
static bool is_expected_reply(const struct resp_value *reply, struct slice expected)
{
    char number[NUMBER_BYTES];
    if (reply->type == RESP_ARRAY && reply->count > 0)
        reply = &reply->items[reply->count - 1];
    struct slice text = reply->text;
    int64_t value = reply->integer;
    if (reply->type == RESP_INTEGER) {
        snprintf(number, sizeof(number), "%lld", (long long)value);
        text = slice_of(number);
    }
    if (reply->type == RESP_NULL)
        return false;
    if (slice_is(expected, "+"))
        return resp_parse_integer(text, &value) && value > 0;
    return slice_is(expected, "*") || slice_equal(text, expected);
}

static void on_other_key_read(void *arg, const struct resp_value *reply)
{
    struct suspicion *suspicion = arg;
    struct check_context *context = suspicion->check->context;
    context->redis->outstanding--;
    /* A value of another type is not the expected one; the check of its own key reports it. */
    if (!reply || (reply->type == RESP_ERROR && !resp_is_error(reply, "WRONGTYPE")))
        check_fail(context, reply);
    else if (!is_expected_reply(reply, slice_of(suspicion->expected)))
        violations_add(&context->violations, checked_key(suspicion->check),
                       slice_of(suspicion->invariant), slice_of(suspicion->what));
    free_suspicion(suspicion);
}

/* Returns a terminated copy. */
static char *copy_reply_text(const struct resp_value *value)
{
    char *text = malloc(value->text.len + 1);
    if (!text)
        return NULL;
    if (value->text.len)
        memcpy(text, value->text.data, value->text.len);
    text[value->text.len] = '\0';
    return text;
}

static struct suspicion *make_suspicion(const struct key_check *check, const struct resp_value *row)
{
    struct suspicion *suspicion = calloc(1, sizeof(*suspicion));
    if (!suspicion)
        return NULL;
    suspicion->check = make_key_check(check->context, check->kind, checked_key(check));
    suspicion->invariant = copy_reply_text(&row->items[ROW_INVARIANT]);
    suspicion->what = copy_reply_text(&row->items[ROW_WHAT]);
    suspicion->expected = copy_reply_text(&row->items[ROW_EXPECTED]);
    if (suspicion->check && suspicion->invariant && suspicion->what && suspicion->expected)
        return suspicion;
    free_suspicion(suspicion);
    return NULL;
}

static void read_other_key(const struct key_check *check, const struct resp_value *row)
{
    struct slice arguments[COMMAND_ARGUMENTS_MAX];
    size_t count = row->count - ROW_COMMAND;
    struct suspicion *suspicion =
        count <= COMMAND_ARGUMENTS_MAX ? make_suspicion(check, row) : NULL;
    if (!suspicion) {
        check_fail(check->context, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++)
        arguments[i] = row->items[ROW_COMMAND + i].text;
    check->context->redis->outstanding++;
    redis_command(check->context->redis->client, row->items[ROW_KEY].text,
                  (struct redis_args){arguments, count}, on_other_key_read, suspicion);
}

/* ---- the check ---- */

static void run_check_script(struct key_check *check, struct slice scan_position);

static void on_check_script_run(void *arg, const struct resp_value *reply)
{
    struct key_check *check = arg;
    struct check_context *context = check->context;
    context->redis->outstanding--;
    if (!reply || reply->type != RESP_ARRAY || reply->count < ANSWER_ROWS) {
        check_fail(context, reply);
        free(check);
        return;
    }
    context->users += (size_t)reply->items[ANSWER_USERS].integer;
    context->connections += (size_t)reply->items[ANSWER_CONNECTIONS].integer;
    for (size_t i = ANSWER_ROWS; i < reply->count; i++) {
        const struct resp_value *row = &reply->items[i];
        if (row->type != RESP_ARRAY || row->count < ROW_EXPECTED)
            check_fail(context, row);
        else if (row->count > ROW_COMMAND)
            read_other_key(check, row);
        else
            violations_add(&context->violations, checked_key(check), row->items[ROW_INVARIANT].text,
                           row->items[ROW_WHAT].text);
    }
    if (slice_is(reply->items[ANSWER_NEXT].text, "0"))
        free(check);
    else
        run_check_script(check, reply->items[ANSWER_NEXT].text);
}

/* Writes the end of the names of the index and the sets in the key's slot: ":{<tag>}"; empty without a cluster. */
static struct slice check_shard(const struct key_check *check, char out[SHARD_LEN])
{
    if (!redis_is_cluster(check->context->redis->client))
        return SLICE("");
    memcpy(out, ":{@@@@}", SHARD_LEN);
    redis_slot_write_tag(out + 2, redis_slot(checked_key(check)));
    return (struct slice){out, SHARD_LEN};
}

/* Takes the check. */
static void run_check_script(struct key_check *check, struct slice scan_position)
{
    const struct key_kind *kind = check->kind;
    struct check_context *context = check->context;
    char window[NUMBER_BYTES];
    char prefix_len[NUMBER_BYTES];
    char shard[SHARD_LEN];
    snprintf(window, sizeof(window), "%lld", (long long)context->window_ms);
    snprintf(prefix_len, sizeof(prefix_len), "%zu", strlen(kind->prefix));
    context->redis->outstanding++;
    redis_command(context->redis->client, checked_key(check),
                  REDIS_ARGS(SLICE("EVAL_RO"), slice_of(kind->script), SLICE("1"),
                             checked_key(check), slice_of(window), check_shard(check, shard),
                             slice_of(prefix_len), scan_position, slice_of(kind->type),
                             slice_of(kind->ttl_ms_max), slice_of(kind->value)),
                  on_check_script_run, check);
}

bool check_key_start(struct check_context *context, struct slice key)
{
    const struct key_kind *kind = NULL;
    for (size_t i = 0; !kind && i < sizeof(KEY_KINDS) / sizeof(KEY_KINDS[0]); i++)
        if (slice_starts_with(key, slice_of(KEY_KINDS[i].prefix)))
            kind = &KEY_KINDS[i];
    if (!kind)
        return false;
    struct key_check *check = make_key_check(context, kind, key);
    if (check)
        run_check_script(check, SLICE("0"));
    else
        check_fail(context, NULL);
    return true;
}
