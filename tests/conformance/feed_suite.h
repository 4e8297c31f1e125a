/*
 * The conformance suite of the feed port (feed/feed_producer.h, feed/feed_consumer.h), for every backend.
 *
 * A backend's test program fills in struct feed_backend and runs feed_suite_run(). Backends are asynchronous, so a test
 * turns the backend until what it waits for has happened.
 */
#ifndef ROLLCALL_TESTS_FEED_SUITE_H
#define ROLLCALL_TESTS_FEED_SUITE_H

#include "feed/feed_consumer.h"
#include "feed/feed_producer.h"

struct feed_backend {
    /* Opens both halves; a second opening after `close` continues with the events that were not settled. */
    void (*open)(struct feed_backend *backend, feed_item_handler on_item, void *arg);
    /* Closes both; publishes in flight are completed. Items under way were settled, or given back with FEED_SKIPPED
     * after `stop`. */
    void (*close)(struct feed_backend *backend);
    /* From now on settling an item does not end its event, and publishing is refused. */
    void (*stop)(struct feed_backend *backend);
    /* Stores the message of an event, where the feed relies on the ledger for that. */
    void (*store)(struct feed_backend *backend, const struct feed_event *event);
    /* Lets the backend work for some milliseconds, of real or of simulated time. */
    void (*turn)(struct feed_backend *backend);
    /* Returns how many dead letters there are. */
    size_t (*dead_letters)(struct feed_backend *backend);
    int64_t (*now_ms)(struct feed_backend *backend);
    /* set by `open` */
    struct feed_producer *producer;
    struct feed_consumer *consumer;
};

/* Runs all tests on a fresh backend, which `make` returns and `free` ends. Returns the number of failed tests. */
int feed_suite_run(struct feed_backend *(*make)(void), void (*free)(struct feed_backend *backend));

#endif
