#include "app/commands/topics_command.h"

#include "app/serve_options.h"
#include "feed/kafka/kafka_topics.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1 };

static int fail_topics(const char *error)
{
    fprintf(stderr, "rollcall topics: %s\n", error);
    return EXIT_FAILED;
}

static int check_all_topics(const struct config *config)
{
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    if (!kafka_client_brokers(config))
        return fail_topics("feed.url names no Kafka; use --feed kafka://HOST:PORT,...");
    if (kafka_topics_check(config, stdout, error) != KAFKA_TOPICS_OK)
        return fail_topics(error);
    return EXIT_OK;
}

static int create_all_topics(const struct config *config)
{
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    if (kafka_client_brokers(config) && !kafka_topics_create(config, error))
        return fail_topics(error);
    return check_all_topics(config);
}

int topics_command(int argc, char **argv)
{
    const char *action = argc > 1 ? argv[1] : "";
    if (strcmp(action, "create") == 0 || strcmp(action, "check") == 0) {
        bool creates = action[1] == 'r';
        argv[1] = argv[0];
        return serve_options_run(argc - 1, argv + 1,
                                 creates ? create_all_topics : check_all_topics);
    }
    if (strcmp(action, "--help") == 0)
        return serve_options_run(argc, argv, check_all_topics);
    fputs("usage: rollcall topics create|check [OPTIONS] (see rollcall topics --help)\n", stderr);
    return SERVE_EXIT_STATUS_USAGE;
}
