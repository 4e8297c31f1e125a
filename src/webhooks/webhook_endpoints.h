/*
 * The endpoints of the application, as `webhooks.url` and `webhooks.endpoints` name them: where requests go, how they are signed, and
 * which types of events they carry.
 *
 * An item of `webhooks.endpoints` is a URL, or a URL followed by " types=a+b" and " secret_file=PATH" (in the file it is a mapping, which
 * the configuration writes like this). Without a secret of its own an endpoint uses `webhooks.secret_file`.
 *
 * Each endpoint has two event queues in the ledger (ledger_events.h), whose names follow from its URL, so that the order of the list
 * does not matter: one for what is sent as it comes, one for messages of which it is not known yet whether they were delivered.
 *
 * Made once at the start; from then on it is read by all threads. The texts of the configuration are borrowed.
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_ENDPOINTS_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_ENDPOINTS_H

#include "config/config.h"
#include "ledger/ledger_events.h"
#include "webhooks/webhook_signature.h"

enum {
    WEBHOOK_ENDPOINTS_MAX = LEDGER_EVENT_QUEUES_MAX / 2,
    WEBHOOK_URL_BYTES_MAX = 2048,
    WEBHOOK_QUEUE_NAME_BYTES = 24,
    WEBHOOK_ERROR_TEXT_MAX = 512,
};

/* The types that the ledger keeps; the others are best effort. */
enum {
    WEBHOOK_TYPES_VOLATILE = 1 << LEDGER_EVENT_PRESENCE_CHANGED | 1 << LEDGER_EVENT_USER_CONNECTED |
                             1 << LEDGER_EVENT_USER_DISCONNECTED,
    WEBHOOK_TYPES_UNDELIVERED = 1 << LEDGER_EVENT_MESSAGE_UNDELIVERED,
    WEBHOOK_TYPES_DURABLE =
        LEDGER_EVENT_TYPES_ALL & ~WEBHOOK_TYPES_VOLATILE & ~WEBHOOK_TYPES_UNDELIVERED,
};

struct webhook_endpoint {
    char url[WEBHOOK_URL_BYTES_MAX + 1];
    struct webhook_secret secret;
    uint32_t types;
    char queue[WEBHOOK_QUEUE_NAME_BYTES];             /* of the durable types */
    char undelivered_queue[WEBHOOK_QUEUE_NAME_BYTES]; /* of message.undelivered */
};

struct webhook_endpoints {
    struct webhook_endpoint items[WEBHOOK_ENDPOINTS_MAX];
    size_t count;
    struct ledger_event_queue
        queues[LEDGER_EVENT_QUEUES_MAX]; /* that somebody wants to be filled */
    size_t queue_count;
};

/* Reads the secrets, too. Returns false with a reason in `error`. Without a URL there are no endpoints. */
bool webhook_endpoints_init(struct webhook_endpoints *endpoints, const struct config *config,
                            char error[WEBHOOK_ERROR_TEXT_MAX]);

/* Erases the secrets. */
void webhook_endpoints_clear(struct webhook_endpoints *endpoints);

/* Returns the types that any endpoint wants. */
uint32_t webhook_endpoints_types(const struct webhook_endpoints *endpoints);

#endif
