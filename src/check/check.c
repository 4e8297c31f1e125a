#include "check/check.h"

#include <stdio.h>

enum { GATEWAY_KEY_BYTES = 256 };

/* ---- the window ---- */

static void took_window(void *arg, const struct resp_value *reply)
{
    struct check_context *context = arg;
    int64_t window_ms;
    context->errand->outstanding--;
    if (reply && reply->type == RESP_TEXT && resp_parse_integer(reply->text, &window_ms) &&
        window_ms > context->window_ms && window_ms <= CHECK_WINDOW_MS_MAX)
        context->window_ms = window_ms;
}

static void took_gateways(void *arg, const struct resp_value *reply)
{
    struct check_context *context = arg;
    char text[GATEWAY_KEY_BYTES];
    context->errand->outstanding--;
    if (!reply || reply->type != RESP_ARRAY)
        return;
    for (size_t i = 0; i < reply->count; i++) {
        struct slice id = reply->items[i].text;
        int len = snprintf(text, sizeof(text), "gateway:%.*s", SLICE_FORMAT(id));
        if (len < 0 || (size_t)len >= sizeof(text))
            continue;
        struct slice key = {text, (size_t)len};
        context->errand->outstanding++;
        redis_command(context->errand->client, key,
                      REDIS_ARGS(SLICE("HGET"), key, SLICE("window_ms")), took_window, context);
    }
}

/* From the gateways' records. What cannot be read here is met again by the scan, and told. */
static void learn_window(struct check_context *context)
{
    static const struct slice LIST = {"presence:gateways", 17};
    char last[24];
    snprintf(last, sizeof(last), "%d", CHECK_GATEWAYS_MAX - 1);
    context->errand->outstanding++;
    redis_command(context->errand->client, LIST,
                  REDIS_ARGS(SLICE("ZRANGE"), LIST, SLICE("0"), slice_of(last)), took_gateways,
                  context);
    blocking_redis_wait(context->errand);
    if (context->window_ms == 0)
        context->window_ms = CHECK_WINDOW_MS;
}

/* ---- the scan ---- */

static bool is_page(const struct resp_value *reply)
{
    return reply && reply->type == RESP_ARRAY && reply->count == 2 &&
           reply->items[0].type == RESP_TEXT && reply->items[1].type == RESP_ARRAY &&
           reply->items[0].text.len < sizeof(((struct check *)0)->cursor);
}

static void took_page(void *arg, const struct resp_value *reply)
{
    struct check *check = arg;
    check->context.errand->outstanding--;
    if (!is_page(reply)) {
        check_fail(&check->context, reply);
        return;
    }
    snprintf(check->cursor, sizeof(check->cursor), "%.*s", SLICE_FORMAT(reply->items[0].text));
    check->page_keys = reply->items[1].count;
    for (size_t i = 0; i < reply->items[1].count; i++) {
        bool ours = check_key_start(&check->context, reply->items[1].items[i].text);
        check->keys += ours;
        check->foreign += !ours;
    }
}

/* One page of one master, and everything that is asked because of it. */
static void scan_page(struct check *check, size_t master)
{
    struct blocking_redis *errand = check->context.errand;
    char count[24];
    snprintf(count, sizeof(count), "%d", CHECK_PAGE_KEYS);
    errand->outstanding++;
    redis_command_on(
        errand->client, master,
        REDIS_ARGS(SLICE("SCAN"), slice_of(check->cursor), SLICE("COUNT"), slice_of(count)),
        took_page, check);
    blocking_redis_wait(errand);
    blocking_redis_rest(errand, (int64_t)(check->page_keys * 1000 / check->keys_a_second));
}

static void scan(struct check *check, size_t master)
{
    snprintf(check->cursor, sizeof(check->cursor), "0");
    do
        scan_page(check, master);
    while (!check->context.failed && !slice_is(slice_of(check->cursor), "0"));
}

static void scan_all(struct check *check)
{
    struct redis_client *client = check->context.errand->client;
    size_t masters = redis_master_count(client);
    for (size_t i = 0; i < masters && !check->context.failed; i++)
        scan(check, i);
    if (!check->context.failed && redis_master_count(client) != masters) {
        check->context.failed = true;
        snprintf(check->context.why, sizeof(check->context.why),
                 "the cluster changed while it was looked at");
    }
}

/* The counts are of the first look. */
static void look_again(struct check *check)
{
    struct check_context *context = &check->context;
    size_t users = context->users;
    size_t connections = context->connections;
    blocking_redis_rest(context->errand, check->patience_ms / (CHECK_ROUNDS - 1));
    violations_confirm(&context->violations);
    for (size_t i = 0; i < context->violations.count && !context->failed; i++) {
        const struct violation *violation = &context->violations.items[i];
        check_key_start(context, (struct slice){violation->key, violation->key_len});
        if (i % CHECK_PAGE_KEYS == CHECK_PAGE_KEYS - 1)
            blocking_redis_wait(context->errand);
    }
    blocking_redis_wait(context->errand);
    violations_drop_unseen(&context->violations);
    context->users = users;
    context->connections = connections;
}

/* That nothing is left of those that were looked at again says nothing of the others. */
static void doubt_the_rest(struct check_context *context)
{
    const struct violations *violations = &context->violations;
    if (context->failed || violations->count > 0 || violations->more == 0)
        return;
    context->failed = true;
    snprintf(context->why, sizeof(context->why),
             "%zu suspicions, beyond the first %d, were not looked at again", violations->more,
             VIOLATIONS_MAX);
}

bool check_run(struct check *check)
{
    if (check->context.window_ms == 0)
        learn_window(&check->context);
    if (check->patience_ms == 0)
        check->patience_ms = check->context.window_ms + CHECK_PATIENCE_EXTRA_MS;
    scan_all(check);
    for (int looks = 1; looks < CHECK_ROUNDS; looks++)
        if (check->context.violations.count > 0 && !check->context.failed)
            look_again(check);
    doubt_the_rest(&check->context);
    return !check->context.failed;
}
