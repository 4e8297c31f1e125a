#include "feed/kafka/kafka_client.h"

#include "base/container.h"
#include "log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <syslog.h>
#include <unistd.h>

enum { PASSWORD_BYTES_MAX = 4096 };

static const char PLAIN[] = "kafka://", SECURE[] = "kafka+ssl://";

/* Short waits, because a producer or consumer that waits for a reconnect delays messages; names and keep-alives as
 * operators expect. */
static const struct kafka_property COMMON[] = {
    {"reconnect.backoff.ms", "100"},
    {"reconnect.backoff.max.ms", "1000"},
    {"socket.keepalive.enable", "true"},
    {"socket.nagle.disable", "true"},
    {"socket.timeout.ms", "10000"},
    {"topic.metadata.refresh.interval.ms", "60000"},
    {"log.queue", "true"},
    {"log.connection.close", "false"},
    {NULL, NULL},
};

static bool is_secure_feed(const struct config *config)
{
    return slice_starts_with(slice_of(config->feed.url), slice_of(SECURE));
}

const char *kafka_client_brokers(const struct config *config)
{
    if (is_secure_feed(config))
        return config->feed.url + strlen(SECURE);
    if (slice_starts_with(slice_of(config->feed.url), slice_of(PLAIN)))
        return config->feed.url + strlen(PLAIN);
    return NULL;
}

/* ---- configuration ---- */

/* librdkafka's own explanation repeats the value, which may be a secret. */
static bool set_kafka_property(rd_kafka_conf_t *conf, const char *name, const char *value,
                               char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    if (rd_kafka_conf_set(conf, name, value, NULL, 0) == RD_KAFKA_CONF_OK)
        return true;
    snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "librdkafka refuses the value of %s", name);
    return false;
}

static bool set_kafka_properties(rd_kafka_conf_t *conf, const struct kafka_property *properties,
                                 char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    for (; properties->name; properties++)
        if (!set_kafka_property(conf, properties->name, properties->value, error))
            return false;
    return true;
}

/* Reads the first line of the file. */
static bool read_kafka_password(const char *path, char password[PASSWORD_BYTES_MAX],
                                char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    FILE *file = fopen(path, "re");
    if (file && fgets(password, PASSWORD_BYTES_MAX, file)) {
        password[strcspn(password, "\r\n")] = '\0';
        fclose(file);
        return true;
    }
    snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "durability.kafka.security.password_file: %s: %s",
             path, file ? "it is empty" : strerror(errno));
    if (file)
        fclose(file);
    return false;
}

static bool set_kafka_login(rd_kafka_conf_t *conf, const struct config *config,
                            char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    static const char *const MECHANISMS[] = {
        [KAFKA_SASL_PLAIN] = "PLAIN",
        [KAFKA_SASL_SCRAM_256] = "SCRAM-SHA-256",
        [KAFKA_SASL_SCRAM_512] = "SCRAM-SHA-512",
    };
    char password[PASSWORD_BYTES_MAX];
    const char *used = config->durability.kafka.security.password;
    const char *path = config->durability.kafka.security.password_file;
    if (path[0]) {
        if (!read_kafka_password(path, password, error))
            return false;
        used = password;
    }
    bool set =
        set_kafka_property(conf, "sasl.mechanism",
                           MECHANISMS[config->durability.kafka.security.sasl_mechanism], error) &&
        set_kafka_property(conf, "sasl.username", config->durability.kafka.security.username,
                           error) &&
        set_kafka_property(conf, "sasl.password", used, error);
    explicit_bzero(password, sizeof(password));
    return set;
}

static bool set_kafka_security(rd_kafka_conf_t *conf, const struct config *config,
                               char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    static const char *const PROTOCOLS[2][2] = {{"plaintext", "sasl_plaintext"},
                                                {"ssl", "sasl_ssl"}};
    bool secure = is_secure_feed(config);
    bool logs_in = config->durability.kafka.security.sasl_mechanism != KAFKA_SASL_NONE;
    const char *ca_file = config->durability.kafka.security.ca_file;
    const char *certificate_file = config->durability.kafka.security.certificate_file;
    if (!set_kafka_property(conf, "security.protocol", PROTOCOLS[secure][logs_in], error))
        return false;
    if (ca_file[0] && !set_kafka_property(conf, "ssl.ca.location", ca_file, error))
        return false;
    if (certificate_file[0] &&
        (!set_kafka_property(conf, "ssl.certificate.location", certificate_file, error) ||
         !set_kafka_property(conf, "ssl.key.location", config->durability.kafka.security.key_file,
                             error)))
        return false;
    return !logs_in || set_kafka_login(conf, config, error);
}

rd_kafka_conf_t *kafka_client_configure(const struct config *config,
                                        const struct kafka_property *properties,
                                        char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (set_kafka_property(conf, "bootstrap.servers", kafka_client_brokers(config), error) &&
        set_kafka_property(conf, "client.id", config->gateway.node_id, error) &&
        set_kafka_properties(conf, COMMON, error) && set_kafka_security(conf, config, error) &&
        set_kafka_properties(conf, properties, error))
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

/* ---- events ---- */

static void log_kafka_line(rd_kafka_event_t *event)
{
    const char *facility, *text;
    int level;
    if (rd_kafka_event_log(event, &facility, &text, &level) != 0)
        return;
    if (level <= LOG_WARNING)
        log_warn("kafka_client", "facility=%s text=%s", facility, log_sentence(slice_of(text)));
    else
        log_info("kafka_client", "facility=%s text=%s", facility, log_sentence(slice_of(text)));
}

static void handle_kafka_event(struct kafka_client *client, rd_kafka_event_t *event)
{
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_LOG)
        log_kafka_line(event);
    else
        client->on_event(client->arg, event);
    rd_kafka_event_destroy(event);
}

/* librdkafka writes to the eventfd only when a queue was empty, so this polls until it is, or asks for another turn. */
static void on_kafka_client_ready(struct loop_source *source, uint32_t events)
{
    struct kafka_client *client = CONTAINER_OF(source, struct kafka_client, source);
    eventfd_t count;
    rd_kafka_event_t *event = NULL;
    int handled = 0;
    (void)events;
    eventfd_read(source->fd, &count);
    while (handled < KAFKA_CLIENT_EVENTS_PER_TURN &&
           (event = rd_kafka_queue_poll(client->queue, 0)) != NULL) {
        handle_kafka_event(client, event);
        handled++;
    }
    if (event)
        kafka_client_wake(client);
    if (client->on_turn)
        client->on_turn(client->arg);
}

void kafka_client_wake(struct kafka_client *client)
{
    eventfd_write(client->source.fd, 1);
}

void kafka_client_watch(struct kafka_client *client, rd_kafka_queue_t *queue)
{
    static const uint64_t ONE = 1;
    rd_kafka_queue_io_event_enable(queue, client->source.fd, &ONE, sizeof(ONE));
    kafka_client_wake(client); /* what came before would keep the queue from ever being announced */
}

/* ---- life ---- */

static bool start_kafka_handle(struct kafka_client *client,
                               const struct kafka_client_options *options,
                               char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    rd_kafka_conf_t *conf = kafka_client_configure(options->config, options->properties, error);
    if (!conf)
        return false;
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG |
                                       RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT);
    client->handle = rd_kafka_new(options->type, conf, error, KAFKA_CLIENT_ERROR_TEXT_MAX);
    if (client->handle)
        return true;
    rd_kafka_conf_destroy(conf);
    return false;
}

bool kafka_client_start(struct kafka_client *client, const struct kafka_client_options *options,
                        char error[KAFKA_CLIENT_ERROR_TEXT_MAX])
{
    *client = (struct kafka_client){
        .source = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .on_ready = on_kafka_client_ready},
        .loop = options->loop,
        .on_event = options->on_event,
        .on_turn = options->on_turn,
        .arg = options->arg,
    };
    if (client->source.fd < 0 || !loop_add_level(options->loop, &client->source)) {
        snprintf(error, KAFKA_CLIENT_ERROR_TEXT_MAX, "cannot create an eventfd");
    } else if (start_kafka_handle(client, options, error)) {
        bool consumes = options->type == RD_KAFKA_CONSUMER;
        if (consumes)
            rd_kafka_poll_set_consumer(client->handle);
        client->queue = consumes ? rd_kafka_queue_get_consumer(client->handle)
                                 : rd_kafka_queue_get_main(client->handle);
        rd_kafka_set_log_queue(client->handle, client->queue);
        kafka_client_watch(client, client->queue);
        return true;
    } else {
        loop_remove(options->loop, &client->source);
    }
    if (client->source.fd >= 0)
        close(client->source.fd);
    return false;
}

/* librdkafka forwards the group's last events to a queue that must not be the consumer's own. */
bool kafka_client_leave_group(struct kafka_client *client)
{
    if (client->is_leaving)
        return rd_kafka_consumer_closed(client->handle);
    client->is_leaving = true;
    rd_kafka_queue_io_event_enable(client->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(client->queue);
    client->queue = rd_kafka_queue_new(client->handle);
    kafka_client_watch(client, client->queue);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(client->handle, client->queue);
    bool is_over = error != NULL; /* it cannot leave, so there is nothing to wait for */
    if (error)
        rd_kafka_error_destroy(error);
    return is_over;
}

/* Leaves only the handle to be destroyed. */
static rd_kafka_t *detach_kafka_handle(struct kafka_client *client)
{
    rd_kafka_t *handle = client->handle;
    if (!handle)
        return NULL;
    rd_kafka_queue_io_event_enable(client->queue, -1, NULL, 0);
    rd_kafka_queue_destroy(client->queue);
    loop_remove(client->loop, &client->source);
    close(client->source.fd);
    client->handle = NULL;
    client->queue = NULL;
    return handle;
}

void kafka_client_stop(struct kafka_client *client)
{
    rd_kafka_t *handle = detach_kafka_handle(client);
    if (handle)
        rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

static void *destroy_kafka_handle(void *handle)
{
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return NULL;
}

void kafka_client_abandon(struct kafka_client *client)
{
    rd_kafka_t *handle = detach_kafka_handle(client);
    pthread_t thread;
    if (!handle)
        return;
    if (pthread_create(&thread, NULL, destroy_kafka_handle, handle) == 0)
        pthread_detach(thread);
    else
        destroy_kafka_handle(handle);
}
