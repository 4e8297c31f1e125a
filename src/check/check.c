#include "check/check.h"

#include <stdio.h>

enum { GATEWAY_KEY_BYTES = 256 };

/* ---- the expiry window ---- */

static void on_lease_window_read(void *arg, const struct resp_value *reply)
{
    struct check_context *context = arg;
    int64_t window_ms;
    context->redis->outstanding--;
    if (reply && reply->type == RESP_TEXT && resp_parse_integer(reply->text, &window_ms) &&
        window_ms > context->window_ms && window_ms <= CHECK_WINDOW_MS_MAX)
        context->window_ms = window_ms;
}

static void on_check_gateways_listed(void *arg, const struct resp_value *reply)
{
    struct check_context *context = arg;
    char text[GATEWAY_KEY_BYTES];
    context->redis->outstanding--;
    if (!reply || reply->type != RESP_ARRAY)
        return;
    for (size_t i = 0; i < reply->count; i++) {
        struct slice id = reply->items[i].text;
        int len = snprintf(text, sizeof(text), "gateway:%.*s", SLICE_FORMAT(id));
        if (len < 0 || (size_t)len >= sizeof(text))
            continue;
        struct slice key = {text, (size_t)len};
        context->redis->outstanding++;
        redis_command(context->redis->client, key,
                      REDIS_ARGS(SLICE("HGET"), key, SLICE("window_ms")), on_lease_window_read,
                      context);
    }
}

/* Reads the window from the gateways' records. The scan reports the records that cannot be read here. */
static void read_lease_window(struct check_context *context)
{
    static const struct slice LIST = {"presence:gateways", 17};
    char last[24];
    snprintf(last, sizeof(last), "%d", CHECK_GATEWAYS_MAX - 1);
    context->redis->outstanding++;
    redis_command(context->redis->client, LIST,
                  REDIS_ARGS(SLICE("ZRANGE"), LIST, SLICE("0"), slice_of(last)),
                  on_check_gateways_listed, context);
    blocking_redis_wait(context->redis);
    if (context->window_ms == 0)
        context->window_ms = CHECK_WINDOW_MS;
}

/* ---- the scan ---- */

static void on_check_page_scanned(void *arg, const struct resp_value *reply)
{
    struct check *check = arg;
    check->context.redis->outstanding--;
    bool is_page = reply && reply->type == RESP_ARRAY && reply->count == 2 &&
                   reply->items[0].type == RESP_TEXT && reply->items[1].type == RESP_ARRAY &&
                   reply->items[0].text.len < sizeof(check->scan_position);
    if (!is_page) {
        check_fail(&check->context, reply);
        return;
    }
    snprintf(check->scan_position, sizeof(check->scan_position), "%.*s",
             SLICE_FORMAT(reply->items[0].text));
    check->page_keys = reply->items[1].count;
    for (size_t i = 0; i < reply->items[1].count; i++) {
        bool ours = check_key_start(&check->context, reply->items[1].items[i].text);
        check->keys += ours;
        check->foreign += !ours;
    }
}

/* Scans all masters, page by page, and checks the keys. */
static void scan_redis_masters(struct check *check)
{
    struct blocking_redis *redis = check->context.redis;
    size_t masters = redis_master_count(redis->client);
    char count[24];
    snprintf(count, sizeof(count), "%d", CHECK_PAGE_KEYS);
    for (size_t i = 0; i < masters && !check->context.failed; i++) {
        snprintf(check->scan_position, sizeof(check->scan_position), "0");
        do {
            redis->outstanding++;
            redis_command_on(redis->client, i,
                             REDIS_ARGS(SLICE("SCAN"), slice_of(check->scan_position),
                                        SLICE("COUNT"), slice_of(count)),
                             on_check_page_scanned, check);
            blocking_redis_wait(redis);
            blocking_redis_rest(redis, (int64_t)(check->page_keys * 1000 / check->keys_a_second));
        } while (!check->context.failed && !slice_is(slice_of(check->scan_position), "0"));
    }
    if (!check->context.failed && redis_master_count(redis->client) != masters) {
        check->context.failed = true;
        snprintf(check->context.why, sizeof(check->context.why),
                 "the cluster changed while it was checked");
    }
}

/* Keeps the counts of the first round. */
static void check_suspicions_again(struct check *check)
{
    struct check_context *context = &check->context;
    size_t users = context->users;
    size_t connections = context->connections;
    blocking_redis_rest(context->redis, check->patience_ms / (CHECK_ROUNDS - 1));
    violations_confirm(&context->violations);
    for (size_t i = 0; i < context->violations.count && !context->failed; i++) {
        const struct violation *violation = &context->violations.items[i];
        check_key_start(context, (struct slice){violation->key, violation->key_len});
        if (i % CHECK_PAGE_KEYS == CHECK_PAGE_KEYS - 1)
            blocking_redis_wait(context->redis);
    }
    blocking_redis_wait(context->redis);
    violations_drop_unseen(&context->violations);
    context->users = users;
    context->connections = connections;
}

bool check_run(struct check *check)
{
    if (check->context.window_ms == 0)
        read_lease_window(&check->context);
    if (check->patience_ms == 0)
        check->patience_ms = check->context.window_ms + CHECK_PATIENCE_EXTRA_MS;
    scan_redis_masters(check);
    for (int round = 1; round < CHECK_ROUNDS; round++)
        if (check->context.violations.count > 0 && !check->context.failed)
            check_suspicions_again(check);
    /* Suspicions that were not kept were not checked again either. */
    const struct violations *violations = &check->context.violations;
    if (!check->context.failed && violations->count == 0 && violations->more > 0) {
        check->context.failed = true;
        snprintf(check->context.why, sizeof(check->context.why),
                 "%zu suspicions, beyond the first %d, were not checked again", violations->more,
                 VIOLATIONS_MAX);
    }
    return !check->context.failed;
}
