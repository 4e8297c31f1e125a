#include "ledger/dynamodb/dynamodb_admin.h"

#include "aws/aws_environment.h"
#include "ledger/dynamodb/client/dynamodb_item.h"
#include "ledger/dynamodb/client/dynamodb_table_state.h"
#include "ledger/dynamodb/client/dynamodb_url.h"

#include <stdio.h>

enum { CALLS_MAX = 4, POLL_MS = 200, SCOPE_MAX = 96 };

/* A loop with one task. */
struct admin {
    struct loop loop;
    struct random random;
    struct ledger_metrics metrics;
    struct dynamodb_url url;
    char scope[SCOPE_MAX];
    struct dynamodb_client client;
    struct fiber_pool *fibers;
    struct ledger_request *request;
    void (*run)(struct admin *admin, struct dynamodb_task *task);
    char *error;
    bool failed;
    bool ended;
    enum dynamodb_table table; /* that is being looked at */
    dynamodb_admin_difference_hook on_difference;
    void *arg;
};

static void fail_admin(struct admin *admin, const struct dynamodb_task *task, const char *what)
{
    admin->failed = true;
    snprintf(admin->error, DYNAMODB_ADMIN_ERROR_MAX, "%s%s: %s failed: status %u %.*s",
             admin->url.prefix, dynamodb_tables[admin->table].name, what, task->http_status,
             (int)(task->answer.len > 256 ? 256 : task->answer.len),
             task->answer.data ? task->answer.data : "");
}

/* ---- calls about one table ---- */

static void begin_table_call(struct admin *admin, struct dynamodb_task *task)
{
    buffer_clear(&task->body);
    json_write_object(&task->body);
    dynamodb_write_table(task, admin->table);
}

/* Returns whether the call succeeded; an error other than `expected` (NULL: none) fails. */
static bool call_table(struct admin *admin, struct dynamodb_task *task, const char *target,
                       const char *expected)
{
    json_write_object_end(&task->body);
    enum dynamodb_outcome outcome = dynamodb_client_call(task, target);
    if (outcome == DYNAMODB_DONE)
        return true;
    if (outcome == DYNAMODB_FAILED || !expected || strcmp(task->error_name, expected) != 0)
        fail_admin(admin, task, target);
    return false;
}

typedef bool (*table_state_reader)(struct dynamodb_table_state *state, char *answer, size_t len);

/* Asks and reads one part of the state; the `expected` error means that there is nothing to read. */
static void read_table_part(struct admin *admin, struct dynamodb_task *task, const char *target,
                            const char *expected, table_state_reader read,
                            struct dynamodb_table_state *state)
{
    if (admin->failed)
        return;
    begin_table_call(admin, task);
    /* the answer lies in the task's own memory */
    if (call_table(admin, task, target, expected) &&
        !read(state, (char *)task->answer.data, task->answer.len))
        fail_admin(admin, task, target);
}

static void read_table_state(struct admin *admin, struct dynamodb_task *task,
                             struct dynamodb_table_state *state)
{
    *state = (struct dynamodb_table_state){0};
    read_table_part(admin, task, "DescribeTable", "ResourceNotFoundException",
                    dynamodb_table_state_read_table, state);
    if (!state->exists)
        return;
    read_table_part(admin, task, "DescribeContinuousBackups", "UnknownOperationException",
                    dynamodb_table_state_read_recovery, state);
    read_table_part(admin, task, "DescribeTimeToLive", NULL, dynamodb_table_state_read_expiry,
                    state);
}

/* ---- creating ---- */

static void write_key_attribute(struct buffer *out, const char *name, const char *key,
                                const char *value)
{
    json_write_object(out);
    json_write_key_string(out, SLICE("AttributeName"), slice_of(name));
    json_write_key_string(out, slice_of(key), slice_of(value));
    json_write_object_end(out);
}

static void write_key_list(struct buffer *out, const char *list, const char *key,
                           const struct dynamodb_table_description *table, const char *of_partition,
                           const char *of_sort)
{
    json_write_key(out, slice_of(list));
    json_write_array(out);
    write_key_attribute(out, table->partition, key, of_partition);
    if (table->sort)
        write_key_attribute(out, table->sort, key, of_sort);
    json_write_array_end(out);
}

static void create_table(struct admin *admin, struct dynamodb_task *task)
{
    const struct dynamodb_table_description *table = &dynamodb_tables[admin->table];
    struct buffer *out = &task->body;
    begin_table_call(admin, task);
    json_write_key_string(out, SLICE("BillingMode"), SLICE("PAY_PER_REQUEST"));
    json_write_key_bool(out, SLICE("DeletionProtectionEnabled"), true);
    write_key_list(out, "KeySchema", "KeyType", table, "HASH", "RANGE");
    write_key_list(out, "AttributeDefinitions", "AttributeType", table, "S",
                   table->sort_is_number ? "N" : "S");
    call_table(admin, task, "CreateTable",
               "ResourceInUseException"); /* by somebody else, just now */
}

static void await_active_table(struct admin *admin, struct dynamodb_task *task,
                               struct dynamodb_table_state *state)
{
    read_table_state(admin, task, state);
    while (!admin->failed && strcmp(state->status, "ACTIVE") != 0) {
        dynamodb_client_wait(task, POLL_MS);
        read_table_state(admin, task, state);
    }
}

static void protect_table(struct admin *admin, struct dynamodb_task *task)
{
    begin_table_call(admin, task);
    json_write_key_bool(&task->body, SLICE("DeletionProtectionEnabled"), true);
    call_table(admin, task, "UpdateTable", NULL);
}

/* A new table's backups take a moment to become available. */
static void enable_recovery(struct admin *admin, struct dynamodb_task *task)
{
    bool enabled = false;
    while (!enabled && !admin->failed) {
        begin_table_call(admin, task);
        json_write_key(&task->body, SLICE("PointInTimeRecoverySpecification"));
        json_write_object(&task->body);
        json_write_key_bool(&task->body, SLICE("PointInTimeRecoveryEnabled"), true);
        json_write_object_end(&task->body);
        enabled = call_table(admin, task, "UpdateContinuousBackups",
                             "ContinuousBackupsUnavailableException");
        if (!enabled && !admin->failed)
            dynamodb_client_wait(task, POLL_MS);
    }
}

static void enable_expiry(struct admin *admin, struct dynamodb_task *task, const char *attribute)
{
    begin_table_call(admin, task);
    json_write_key(&task->body, SLICE("TimeToLiveSpecification"));
    json_write_object(&task->body);
    json_write_key_bool(&task->body, SLICE("Enabled"), true);
    json_write_key_string(&task->body, SLICE("AttributeName"), slice_of(attribute));
    json_write_object_end(&task->body);
    call_table(admin, task, "UpdateTimeToLive", NULL);
}

static void complete_table(struct admin *admin, struct dynamodb_task *task)
{
    struct dynamodb_table_state state;
    const char *expires = dynamodb_tables[admin->table].expires;
    read_table_state(admin, task, &state);
    if (!state.exists && !admin->failed)
        create_table(admin, task);
    await_active_table(admin, task, &state);
    if (!admin->failed && !state.is_protected)
        protect_table(admin, task);
    if (!admin->failed && state.knows_recovery && !state.has_recovery)
        enable_recovery(admin, task);
    if (!admin->failed && expires && !state.expires[0])
        enable_expiry(admin, task, expires);
}

static void create_missing_tables(struct admin *admin, struct dynamodb_task *task)
{
    for (unsigned at = 0; at < DYNAMODB_TABLE_COUNT && !admin->failed; at++) {
        admin->table = (enum dynamodb_table)at;
        complete_table(admin, task);
    }
}

/* ---- checking ---- */

static void on_table_difference(void *arg, const char *difference)
{
    struct admin *admin = arg;
    char name[DYNAMODB_NAME_MAX];
    snprintf(name, sizeof(name), "%s%s", admin->url.prefix, dynamodb_tables[admin->table].name);
    admin->on_difference(admin->arg, name, difference);
}

static void check_tables(struct admin *admin, struct dynamodb_task *task)
{
    struct dynamodb_table_state state;
    for (unsigned at = 0; at < DYNAMODB_TABLE_COUNT && !admin->failed; at++) {
        admin->table = (enum dynamodb_table)at;
        read_table_state(admin, task, &state);
        if (!admin->failed)
            dynamodb_table_state_compare(&state, &dynamodb_tables[at], on_table_difference, admin);
    }
}

/* ---- running ---- */

static void run_admin_fiber(struct fiber *fiber, void *arg)
{
    struct admin *admin = arg;
    struct dynamodb_task task = {.client = &admin->client,
                                 .fiber = fiber,
                                 .request = admin->request,
                                 .takes_errors = true,
                                 .deadline_ms =
                                     admin->loop.clock.now_ms + DYNAMODB_ADMIN_TIME_LIMIT_MS};
    admin->run(admin, &task);
    dynamodb_task_end(&task);
    admin->ended = true;
}

static bool open_admin(struct admin *admin, struct ledger_client *client)
{
    random_init_system(&admin->random);
    if (!loop_init(&admin->loop))
        return false;
    *client = (struct ledger_client){.clock = &admin->loop.clock};
    admin->request = ledger_request_make(client, LEDGER_SETTINGS_GET, NULL);
    admin->fibers = fiber_pool_make(1);
    snprintf(admin->scope, sizeof(admin->scope), "aws:amz:%s:dynamodb", admin->url.region);
    admin->client = (struct dynamodb_client){
        .loop = &admin->loop,
        .http = http_client_make(&admin->loop, CALLS_MAX),
        .random = &admin->random,
        .metrics = &admin->metrics,
        .settings = {.retry = {5, 100, 5000}, .transaction_conflict = {5, 50}},
        .url = admin->url.endpoint,
        .scope = admin->scope,
        .table_prefix = admin->url.prefix,
        .ca_file = admin->url.ca_file[0] ? admin->url.ca_file : aws_environment_ca_file()};
    if (!admin->client.http)
        return false;
    struct aws_credentials_options options = {
        .loop = &admin->loop, .http = admin->client.http, .region = admin->url.region};
    admin->client.credentials = aws_credentials_make(&options);
    return admin->client.credentials && admin->fibers && !admin->request->stands_in;
}

static void close_admin(struct admin *admin)
{
    aws_credentials_free(&admin->client.credentials);
    http_client_free(&admin->client.http);
    fiber_pool_free(&admin->fibers);
    if (admin->request && !admin->request->stands_in)
        ledger_request_free(admin->request);
    if (admin->loop.read_buffer)
        loop_free(&admin->loop);
}

static bool run_admin(struct admin *admin, const char *url)
{
    struct ledger_client client;
    char url_error[DYNAMODB_URL_ERROR_MAX];
    if (!dynamodb_url_parse(url, &admin->url, url_error)) {
        snprintf(admin->error, DYNAMODB_ADMIN_ERROR_MAX, "%s", url_error);
        return false;
    }
    snprintf(admin->error, DYNAMODB_ADMIN_ERROR_MAX, "out of memory");
    bool opened = open_admin(admin, &client);
    if (opened && fiber_start(admin->fibers, run_admin_fiber, admin))
        while (!admin->ended)
            loop_turn(&admin->loop, POLL_MS);
    close_admin(admin);
    return opened && admin->ended && !admin->failed;
}

bool dynamodb_admin_create_tables(const char *url, char error[DYNAMODB_ADMIN_ERROR_MAX])
{
    struct admin admin = {.run = create_missing_tables, .error = error};
    return run_admin(&admin, url);
}

bool dynamodb_admin_check_tables(const char *url, dynamodb_admin_difference_hook on_difference,
                                 void *arg, char error[DYNAMODB_ADMIN_ERROR_MAX])
{
    struct admin admin = {
        .run = check_tables, .error = error, .on_difference = on_difference, .arg = arg};
    return run_admin(&admin, url);
}
