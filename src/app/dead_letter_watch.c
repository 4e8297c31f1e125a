#include "app/dead_letter_watch.h"

#include "base/clock.h"
#include "feed/kafka/kafka_letters.h"
#include "log/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct dead_letter_watch {
    const struct config *config;
    struct metrics metrics;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ending;
    bool is_ending; /* under the mutex */
};

/* Returns false when the watch ends. */
static bool wait_for_next_count(struct dead_letter_watch *watch)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += DEAD_LETTER_WATCH_INTERVAL_MS / 1000;
    pthread_mutex_lock(&watch->mutex);
    int waited = 0;
    while (!watch->is_ending && waited == 0)
        waited = pthread_cond_timedwait(&watch->ending, &watch->mutex, &until);
    bool goes_on = !watch->is_ending;
    pthread_mutex_unlock(&watch->mutex);
    return goes_on;
}

/* A depth that cannot be read stays as it was; the outage of Kafka has alerts of its own. */
static void *watch_dead_letters(void *arg)
{
    struct dead_letter_watch *watch = arg;
    struct kafka_letters *letters = NULL;
    char error[KAFKA_LETTERS_ERROR_TEXT_MAX];
    do {
        if (!letters)
            letters = kafka_letters_open(watch->config, error);
        int64_t count = letters ? kafka_letters_count(letters, error) : -1;
        if (count >= 0)
            metrics_set(&watch->metrics, METRIC_FANOUT_DLQ_DEPTH, count);
        else
            log_warn("dead_letters_not_counted", "error=%s", log_sentence(slice_of(error)));
    } while (wait_for_next_count(watch));
    if (letters)
        kafka_letters_close(&letters);
    return NULL;
}

struct dead_letter_watch *dead_letter_watch_start(const struct config *config,
                                                  struct exposition *exposition)
{
    struct dead_letter_watch *watch = calloc(1, sizeof(*watch));
    pthread_condattr_t monotonic;
    if (!watch)
        return NULL;
    watch->config = config;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->ending, &monotonic);
    pthread_condattr_destroy(&monotonic);
    metrics_set(&watch->metrics, METRIC_FANOUT_DLQ_THRESHOLD,
                config->fanout.dlq.alert_threshold_per_hour);
    exposition_add(exposition, &watch->metrics);
    if (pthread_create(&watch->thread, NULL, watch_dead_letters, watch) == 0)
        return watch;
    free(watch);
    return NULL;
}

void dead_letter_watch_free(struct dead_letter_watch **watch)
{
    struct dead_letter_watch *freed = *watch;
    *watch = NULL;
    if (!freed)
        return;
    pthread_mutex_lock(&freed->mutex);
    freed->is_ending = true;
    pthread_cond_signal(&freed->ending);
    pthread_mutex_unlock(&freed->mutex);
    pthread_join(freed->thread, NULL);
    pthread_cond_destroy(&freed->ending);
    pthread_mutex_destroy(&freed->mutex);
    free(freed);
}
