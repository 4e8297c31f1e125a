#include "webhooks/webhook_endpoints.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>

static bool fail_endpoint(char error[WEBHOOK_ERROR_TEXT_MAX], const char *setting,
                          struct slice value, const char *problem)
{
    snprintf(error, WEBHOOK_ERROR_TEXT_MAX, "%s: %.*s: %s", setting,
             (int)(value.len < 200 ? value.len : 200), value.data, problem);
    return false;
}

/* Reads "message.created+call.missed". */
static bool parse_endpoint_types(struct slice text, uint32_t *types,
                                 char error[WEBHOOK_ERROR_TEXT_MAX])
{
    struct slice name;
    *types = 0;
    while (text.len) {
        enum ledger_event_type type;
        text = slice_split(text, '+', &name);
        if (!ledger_event_type_parse(name, &type))
            return fail_endpoint(error, "webhooks.endpoints", name,
                                 "expected a type of events, such as message.created");
        *types |= 1u << type;
    }
    return *types != 0 ||
           fail_endpoint(error, "webhooks.endpoints", text, "expected at least one type");
}

static bool read_endpoint_secret(struct webhook_endpoint *endpoint, const char *path,
                                 const char *setting, char error[WEBHOOK_ERROR_TEXT_MAX])
{
    const char *problem = webhook_secret_read(&endpoint->secret, path);
    return !problem || fail_endpoint(error, setting, slice_of(path), problem);
}

/* Two endpoints of one URL would take each other's events. */
static bool is_endpoint_repeated(const struct webhook_endpoints *endpoints, const char *url)
{
    for (size_t i = 0; i < endpoints->count; i++)
        if (strcmp(endpoints->items[i].url, url) == 0)
            return true;
    return false;
}

/* Queues keep their names when endpoints are added or reordered, and these show nothing of the URL. */
static void name_endpoint_queues(struct webhook_endpoint *endpoint)
{
    unsigned long long hash = XXH3_64bits(endpoint->url, strlen(endpoint->url));
    snprintf(endpoint->queue, sizeof(endpoint->queue), "%016llx", hash);
    snprintf(endpoint->undelivered_queue, sizeof(endpoint->undelivered_queue), "%016llx-u", hash);
}

static bool add_endpoint(struct webhook_endpoints *endpoints, const struct config *config,
                         const char *item, char error[WEBHOOK_ERROR_TEXT_MAX])
{
    struct webhook_endpoint *endpoint = &endpoints->items[endpoints->count];
    const char *types_at = strstr(item, " types=");
    const char *secret_at = strstr(item, " secret_file=");
    struct slice url, types = SLICE_NONE;
    slice_split(slice_of(item), ' ', &url);
    if (endpoints->count == WEBHOOK_ENDPOINTS_MAX)
        return fail_endpoint(error, "webhooks.endpoints", url, "expected at most 8 endpoints");
    if (url.len > WEBHOOK_URL_BYTES_MAX)
        return fail_endpoint(error, "webhooks.endpoints", url, "expected a shorter URL");
    *endpoint = (struct webhook_endpoint){.types = LEDGER_EVENT_TYPES_ALL};
    memcpy(endpoint->url, url.data, url.len);
    if (is_endpoint_repeated(endpoints, endpoint->url))
        return fail_endpoint(error, "webhooks.endpoints", url, "is there already");
    if (types_at)
        slice_split(slice_of(types_at + strlen(" types=")), ' ', &types);
    if (types_at && !parse_endpoint_types(types, &endpoint->types, error))
        return false;
    if (secret_at && !read_endpoint_secret(endpoint, secret_at + strlen(" secret_file="),
                                           "webhooks.endpoints: secret_file", error))
        return false;
    if (!secret_at && config->webhooks.secret_file[0] &&
        !read_endpoint_secret(endpoint, config->webhooks.secret_file, "webhooks.secret_file",
                              error))
        return false;
    name_endpoint_queues(endpoint);
    endpoints->count++;
    return true;
}

static void add_endpoint_queue(struct webhook_endpoints *endpoints, const char *name,
                               uint32_t types, uint32_t count_max)
{
    if (types)
        endpoints->queues[endpoints->queue_count++] =
            (struct ledger_event_queue){slice_of(name), types, count_max};
}

bool webhook_endpoints_init(struct webhook_endpoints *endpoints, const struct config *config,
                            char error[WEBHOOK_ERROR_TEXT_MAX])
{
    const struct config_list *list = &config->webhooks.endpoints;
    const char *ca_file = config->webhooks.ca_file;
    endpoints->count = endpoints->queue_count = 0;
    if (ca_file[0] && access(ca_file, R_OK) != 0)
        return fail_endpoint(error, "webhooks.ca_file", slice_of(ca_file), "cannot read the file");
    if (config->webhooks.url[0] && !add_endpoint(endpoints, config, config->webhooks.url, error))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (!add_endpoint(endpoints, config, list->items[i], error))
            return false;
    for (size_t i = 0; i < endpoints->count; i++) {
        const struct webhook_endpoint *endpoint = &endpoints->items[i];
        uint32_t count_max = config->webhooks.backlog_max;
        add_endpoint_queue(endpoints, endpoint->queue, endpoint->types & WEBHOOK_TYPES_DURABLE,
                           count_max);
        add_endpoint_queue(endpoints, endpoint->undelivered_queue,
                           endpoint->types & WEBHOOK_TYPES_UNDELIVERED, count_max);
    }
    return true;
}

void webhook_endpoints_clear(struct webhook_endpoints *endpoints)
{
    OPENSSL_cleanse(endpoints, sizeof(*endpoints));
}

uint32_t webhook_endpoints_types(const struct webhook_endpoints *endpoints)
{
    uint32_t types = 0;
    for (size_t i = 0; i < endpoints->count; i++)
        types |= endpoints->items[i].types;
    return types;
}
