#include "check/check_key.h"

#include "check/check_scripts.h"

#include <stdio.h>
#include <stdlib.h>

/* What stands before the rows in an answer, and in a row before the command. */
enum { ANSWER_NEXT, ANSWER_USERS, ANSWER_CONNECTIONS, ANSWER_ROWS };
enum { ROW_INVARIANT, ROW_WHAT, ROW_EXPECTED, ROW_KEY, ROW_COMMAND };

enum { NUMBER_BYTES = 24, COMMAND_WORDS_MAX = 8 };

struct kind {
    const char *prefix; /* of the keys */
    const char *script;
    const char *type; /* the rest is for CHECK_SCRIPT_PLAIN */
    const char *ttl_ms_max;
    const char *value;
};

/* A prefix that begins with another one stands before it. */
static const struct kind KINDS[] = {
    {.prefix = "connection:", .script = CHECK_SCRIPT_CONNECTION},
    {.prefix = "user_connections:", .script = CHECK_SCRIPT_USER},
    {.prefix = "user_servers:", .script = CHECK_SCRIPT_USER},
    {.prefix = "user_presence:", .script = CHECK_SCRIPT_USER},
    {.prefix = "server_connections:", .script = CHECK_SCRIPT_SERVER},
    {.prefix = "gateway:", .script = CHECK_SCRIPT_GATEWAY},
    {.prefix = "presence:v_heartbeat", .script = CHECK_SCRIPT_INDEX},
    {.prefix = "presence:online", .script = CHECK_SCRIPT_MEMBERS},
    {.prefix = "presence:incall", .script = CHECK_SCRIPT_MEMBERS},
    {.prefix = "call:", .script = CHECK_SCRIPT_CALL},
    {.prefix = "calls:due", .script = CHECK_SCRIPT_INDEX},
    {"last_seen:", CHECK_SCRIPT_PLAIN, "string", "", "time"},
    {"presence_visibility:", CHECK_SCRIPT_PLAIN, "string", "300000", "visibility"},
    {"presence_history:", CHECK_SCRIPT_PLAIN, "list", "3600000", ""},
    {"connection_user:", CHECK_SCRIPT_PLAIN, "string", "3600000", ""},
    {"typing:r:", CHECK_SCRIPT_PLAIN, "hash", "3600000", ""},
    {"typing_pace:", CHECK_SCRIPT_PLAIN, "string", "3600000", ""},
    {"user:", CHECK_SCRIPT_PLAIN, "", "86400000", "graph"},
};

/* One look under way. */
struct look {
    struct check_context *context;
    const struct kind *kind;
    size_t key_len;
    char key[];
};

/* A suspicion that another key can refute. */
struct question {
    struct look *look; /* a copy of its own */
    char *invariant;
    char *what;
    char *expected;
};

void check_fail(struct check_context *context, const struct resp_value *reply)
{
    if (context->failed)
        return;
    context->failed = true;
    enum redis_problem problem = redis_client_problem(context->errand->client);
    if (!reply)
        snprintf(context->why, sizeof(context->why), "%s",
                 problem == REDIS_FINE ? "an answer did not come" : redis_problem_text(problem));
    else
        snprintf(context->why, sizeof(context->why), "it answered: %.*s",
                 SLICE_FORMAT(slice_first(reply->text, 200)));
}

static const struct kind *kind_of(struct slice key)
{
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
        if (slice_starts_with(key, slice_of(KINDS[i].prefix)))
            return &KINDS[i];
    return NULL;
}

static struct look *make_look(struct check_context *context, const struct kind *kind,
                              struct slice key)
{
    struct look *look = malloc(sizeof(*look) + key.len);
    if (!look)
        return NULL;
    *look = (struct look){.context = context, .kind = kind, .key_len = key.len};
    memcpy(look->key, key.data, key.len);
    return look;
}

static struct slice look_key(const struct look *look)
{
    return (struct slice){look->key, look->key_len};
}

/* ---- questions to other keys ---- */

static void free_question(struct question *question)
{
    free(question->look);
    free(question->invariant);
    free(question->what);
    free(question->expected);
    free(question);
}

/* PUBSUB answers with names and numbers in turn: the last counts. */
static bool is_expected(const struct resp_value *reply, struct slice expected)
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

static void answered(void *arg, const struct resp_value *reply)
{
    struct question *question = arg;
    struct check_context *context = question->look->context;
    context->errand->outstanding--;
    /* A value of another type is not what was expected, and is told where it is looked at. */
    if (!reply || (reply->type == RESP_ERROR && !resp_is_error(reply, "WRONGTYPE")))
        check_fail(context, reply);
    else if (!is_expected(reply, slice_of(question->expected)))
        violations_add(&context->violations, look_key(question->look),
                       slice_of(question->invariant), slice_of(question->what));
    free_question(question);
}

/* Terminated, which a slice is not. */
static char *keep(const struct resp_value *value)
{
    char *text = malloc(value->text.len + 1);
    if (!text)
        return NULL;
    if (value->text.len)
        memcpy(text, value->text.data, value->text.len);
    text[value->text.len] = '\0';
    return text;
}

static struct question *make_question(const struct look *look, const struct resp_value *row)
{
    struct question *question = calloc(1, sizeof(*question));
    if (!question)
        return NULL;
    question->look = make_look(look->context, look->kind, look_key(look));
    question->invariant = keep(&row->items[ROW_INVARIANT]);
    question->what = keep(&row->items[ROW_WHAT]);
    question->expected = keep(&row->items[ROW_EXPECTED]);
    if (question->look && question->invariant && question->what && question->expected)
        return question;
    free_question(question);
    return NULL;
}

static void ask(const struct look *look, const struct resp_value *row)
{
    struct slice words[COMMAND_WORDS_MAX];
    size_t count = row->count - ROW_COMMAND;
    struct question *question = count <= COMMAND_WORDS_MAX ? make_question(look, row) : NULL;
    if (!question) {
        check_fail(look->context, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++)
        words[i] = row->items[ROW_COMMAND + i].text;
    look->context->errand->outstanding++;
    redis_command(look->context->errand->client, row->items[ROW_KEY].text,
                  (struct redis_args){words, count}, answered, question);
}

/* ---- the look itself ---- */

static void look_from(struct look *look, struct slice cursor);

static void take_row(const struct look *look, const struct resp_value *row)
{
    if (row->type != RESP_ARRAY || row->count < ROW_EXPECTED)
        check_fail(look->context, row);
    else if (row->count > ROW_COMMAND)
        ask(look, row);
    else
        violations_add(&look->context->violations, look_key(look), row->items[ROW_INVARIANT].text,
                       row->items[ROW_WHAT].text);
}

static void looked(void *arg, const struct resp_value *reply)
{
    struct look *look = arg;
    struct check_context *context = look->context;
    context->errand->outstanding--;
    if (!reply || reply->type != RESP_ARRAY || reply->count < ANSWER_ROWS) {
        check_fail(context, reply);
        free(look);
        return;
    }
    context->users += (size_t)reply->items[ANSWER_USERS].integer;
    context->connections += (size_t)reply->items[ANSWER_CONNECTIONS].integer;
    for (size_t i = ANSWER_ROWS; i < reply->count; i++)
        take_row(look, &reply->items[i]);
    if (slice_is(reply->items[ANSWER_NEXT].text, "0"))
        free(look);
    else
        look_from(look, reply->items[ANSWER_NEXT].text);
}

/* Takes the look. */
static void look_from(struct look *look, struct slice cursor)
{
    const struct kind *kind = look->kind;
    struct check_context *context = look->context;
    char window[NUMBER_BYTES];
    char prefix_len[NUMBER_BYTES];
    snprintf(window, sizeof(window), "%lld", (long long)context->window_ms);
    snprintf(prefix_len, sizeof(prefix_len), "%zu", strlen(kind->prefix));
    context->errand->outstanding++;
    redis_command(context->errand->client, look_key(look),
                  REDIS_ARGS(SLICE("EVAL_RO"), slice_of(kind->script), SLICE("1"), look_key(look),
                             slice_of(window),
                             redis_is_cluster(context->errand->client) ? SLICE("1") : SLICE("0"),
                             slice_of(prefix_len), cursor, slice_of(kind->type),
                             slice_of(kind->ttl_ms_max), slice_of(kind->value)),
                  looked, look);
}

bool check_key_start(struct check_context *context, struct slice key)
{
    const struct kind *kind = kind_of(key);
    struct look *look = kind ? make_look(context, kind, key) : NULL;
    if (!kind)
        return false;
    if (look)
        look_from(look, SLICE("0"));
    else
        check_fail(context, NULL);
    return true;
}
