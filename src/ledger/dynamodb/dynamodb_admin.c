#include "ledger/dynamodb/dynamodb_admin.h"

#include "ledger/dynamodb/dynamodb_item.h"
#include "ledger/dynamodb/dynamodb_url.h"

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
};

static void fail_admin(struct admin *admin, const struct dynamodb_task *task, const char *what,
                       enum dynamodb_table table)
{
    admin->failed = true;
    snprintf(admin->error, DYNAMODB_ADMIN_ERROR_MAX, "%s %s%s failed: status %u %.*s", what,
             admin->url.prefix, dynamodb_tables[table].name, task->http_status,
             (int)(task->answer.len > 256 ? 256 : task->answer.len),
             task->answer.data ? task->answer.data : "");
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

static void begin_table_call(struct dynamodb_task *task, enum dynamodb_table table)
{
    buffer_clear(&task->body);
    json_write_object(&task->body);
    dynamodb_write_table(task, table);
}

static enum dynamodb_outcome call_table(struct dynamodb_task *task, const char *target)
{
    json_write_object_end(&task->body);
    return dynamodb_client_call(task, target);
}

static bool is_table_active(struct dynamodb_task *task, enum dynamodb_table table)
{
    begin_table_call(task, table);
    if (call_table(task, "DescribeTable") != DYNAMODB_DONE)
        return false;
    return memmem(task->answer.data, task->answer.len, "\"ACTIVE\"", 8) != NULL;
}

/* A table that exists already is an error of the call, and no failure of the task. */
static bool has_table(struct dynamodb_task *task, enum dynamodb_table table)
{
    bool exists = is_table_active(task, table);
    task->failed = false;
    return exists;
}

static void create_table(struct admin *admin, struct dynamodb_task *task, enum dynamodb_table at)
{
    const struct dynamodb_table_description *table = &dynamodb_tables[at];
    struct buffer *out = &task->body;
    begin_table_call(task, at);
    json_write_key_string(out, SLICE("BillingMode"), SLICE("PAY_PER_REQUEST"));
    json_write_key_bool(out, SLICE("DeletionProtectionEnabled"), true);
    write_key_list(out, "KeySchema", "KeyType", table, "HASH", "RANGE");
    write_key_list(out, "AttributeDefinitions", "AttributeType", table, "S",
                   table->sort_is_number ? "N" : "S");
    if (call_table(task, "CreateTable") != DYNAMODB_DONE) {
        fail_admin(admin, task, "creating", at);
        return;
    }
    while (!task->failed && !is_table_active(task, at))
        dynamodb_client_wait(task, POLL_MS);
    if (task->failed)
        fail_admin(admin, task, "waiting for", at);
}

static void create_missing_tables(struct admin *admin, struct dynamodb_task *task)
{
    for (unsigned at = 0; at < DYNAMODB_TABLE_COUNT && !admin->failed; at++)
        if (!has_table(task, (enum dynamodb_table)at))
            create_table(admin, task, (enum dynamodb_table)at);
}

/* ---- running ---- */

static void run_admin_fiber(struct fiber *fiber, void *arg)
{
    struct admin *admin = arg;
    struct dynamodb_task task = {.client = &admin->client,
                                 .fiber = fiber,
                                 .request = admin->request,
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
        .ca_file = admin->url.ca_file[0] ? admin->url.ca_file : NULL};
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

bool dynamodb_admin_create_tables(const char *url, char error[DYNAMODB_ADMIN_ERROR_MAX])
{
    struct admin admin = {.run = create_missing_tables, .error = error};
    struct ledger_client client;
    char url_error[DYNAMODB_URL_ERROR_MAX];
    if (!dynamodb_url_parse(url, &admin.url, url_error)) {
        snprintf(error, DYNAMODB_ADMIN_ERROR_MAX, "%s", url_error);
        return false;
    }
    snprintf(error, DYNAMODB_ADMIN_ERROR_MAX, "out of memory");
    bool opened = open_admin(&admin, &client);
    if (opened && fiber_start(admin.fibers, run_admin_fiber, &admin))
        while (!admin.ended)
            loop_turn(&admin.loop, POLL_MS);
    close_admin(&admin);
    return opened && admin.ended && !admin.failed;
}
