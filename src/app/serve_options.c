#include "app/serve_options.h"

#include "aggregate/aggregate_ring.h"
#include "app/gateway/memory_pressure.h"
#include "config/nearest.h"
#include "config/setting.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SERVE = 1,
    LEDGER = 2,
    TOPICS = 4,
    FANOUT = 8,
    AGGREGATE = 16,
    ALL = SERVE | LEDGER | TOPICS | FANOUT | AGGREGATE
};

enum { HOST_NAME_KEPT_MAX = 40, NODE_ID_BYTES = 64 };

/* What an option does. */
enum effect { SETS_VALUE, NAMES_FILE, ASSIGNS, PRINTS_CONFIG, PRINTS_REFERENCE, PRINTS_HELP };

struct option {
    const char *flag;
    const char *argument; /* what follows it; NULL: nothing, and the setting becomes true */
    const char *setting;  /* NULL unless SETS_VALUE */
    enum effect effect;
    unsigned commands;
    const char *help; /* NULL: not shown in the help */
};

static const struct option options[] = {
    {"--config", "FILE", NULL, NAMES_FILE, ALL, "read settings from a YAML file"},
    {"--dev", NULL, "dev", SETS_VALUE, SERVE, "for a laptop: loopback only, keys are generated"},
    {"--listen", "HOST:PORT", "gateway.listen", SETS_VALUE, SERVE, "serve clients here"},
    {"--node-id", "NAME", "gateway.node_id", SETS_VALUE, SERVE | FANOUT | AGGREGATE,
     "name of this process"},
    {"--workers", "N", "gateway.workers", SETS_VALUE, SERVE | FANOUT,
     "worker threads; 0 is one per core"},
    {"--state", "URL", "state.url", SETS_VALUE, SERVE | FANOUT | AGGREGATE,
     "where presence is kept: memory, redis://HOST:PORT[/DB], redis-cluster://HOST:PORT,... or redis-sentinel://HOST:PORT,.../MASTER"},
    {"--aggregators", "HOST:PORT,...", "state.aggregators", SETS_VALUE, SERVE | FANOUT,
     "aggregators that hold the connections to Redis, instead of --state"},
    {"--ledger", "URL", "ledger.url", SETS_VALUE, SERVE | LEDGER | FANOUT,
     "where durable data is kept: sqlite:PATH, or remote://HOST:PORT for serve"},
    {"--feed", "URL", "feed.url", SETS_VALUE, SERVE | TOPICS | FANOUT,
     "how messages reach the fan-out: local or kafka://HOST:PORT,..."},
    {"--peer-listen", "HOST:PORT", "peer.listen", SETS_VALUE, SERVE | LEDGER | AGGREGATE,
     "serve peer links here"},
    {"--peers", "HOST:PORT,...", "peer.peers", SETS_VALUE, SERVE | FANOUT,
     "other processes, to link with"},
    {"--jwt-keys", "FILE", "auth.keys_file", SETS_VALUE, SERVE, "keys of tokens, PEM or JWKS"},
    {"--data-dir", "DIR", "data_dir", SETS_VALUE, SERVE | LEDGER,
     "development keys and the SQLite file"},
    {"--set", "KEY=VALUE", NULL, ASSIGNS, ALL, "any setting; may be repeated"},
    {"--print-config", NULL, NULL, PRINTS_CONFIG, ALL, "print the effective settings and exit"},
    {"--config-reference", NULL, NULL, PRINTS_REFERENCE, SERVE, NULL},
    {"--help", NULL, NULL, PRINTS_HELP, ALL, "print this and exit"},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

struct command {
    const char *name;
    unsigned bit;
    const char *purpose;
};

static const struct command commands[] = {
    {"serve", SERVE, "Runs a gateway."},
    {"ledger", LEDGER,
     "Runs the ledger as a process of its own, for gateways with\n"
     "--ledger remote://HOST:PORT."},
    {"fanout", FANOUT,
     "Fans persisted messages out to the gateways, as a process of its own that\n"
     "serves no clients. Needs --state, --ledger and --feed of a fleet."},
    {"aggregate", AGGREGATE,
     "Holds the connections to Redis for gateways with --aggregators HOST:PORT,...\n"
     "Needs --state of a fleet, --peer-listen and peer.secret."},
    {"topics", TOPICS,
     "Makes (rollcall topics create) or looks at (rollcall topics check) the topics of\n"
     "a feed on Kafka. See durability.kafka.partitions and durability.kafka.replication."},
};

/* A parsed command line. The arrays have capacity for every argument. */
struct command_line {
    const struct command *command;
    const struct serve_surroundings *surroundings;
    const char *file;
    const char **assignments;
    size_t assignment_count;
    struct config_flag *flags;
    size_t flag_count;
    bool prints_config;
    bool prints_reference;
    bool prints_help;
};

void serve_options_write_usage(FILE *out)
{
    fputs("Usage: rollcall COMMAND [OPTIONS]\n"
          "\n"
          "Real-time presence and connection routing.\n"
          "\n"
          "Commands:\n"
          "  serve                             run a gateway\n"
          "  ledger                            run the ledger of several gateways\n"
          "  fanout                            fan messages out, without clients\n"
          "  aggregate                         hold the connections to Redis of many gateways\n"
          "  token USER                        print a signed token\n"
          "  check                             verify the invariants on a live Redis\n"
          "  repair CHAT                       restore the counter of a halted chat\n"
          "  key create|list|revoke            API keys of your own programs\n"
          "  dead-letters                      list or replay what could not be fanned out\n"
          "  webhooks                          list or replay events that no endpoint took\n"
          "  tables                            create or check the tables of a ledger on DynamoDB\n"
          "  topics                            create or check the topics of a feed on Kafka\n"
          "  plan                              how many servers so many users need\n"
          "  sim                               simulate a fleet under faults, from a seed\n"
          "\n"
          "  --help                            print this; after a command, its options\n"
          "  --version                         print the version\n"
          "\n"
          "To try it:\n"
          "  rollcall serve --dev\n"
          "  rollcall token alice\n",
          out);
}

static void write_serve_help(const struct command *command, FILE *out)
{
    fprintf(out, "Usage: rollcall %s [OPTIONS]\n\n%s\n\nOptions:\n", command->name,
            command->purpose);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        char left[64];
        if (!(option->commands & command->bit) || !option->help)
            continue;
        snprintf(left, sizeof(left), "%s %s", option->flag,
                 option->argument ? option->argument : "");
        fprintf(out, "  %-26s %s\n", left, option->help);
    }
    fputs("\nA setting KEY is also ROLLCALL_KEY in the environment, in upper case with __ for each "
          "dot.\n"
          "A flag wins over --set, --set over the environment, the environment over the file.\n"
          "docs/CONFIGURATION.md lists every setting.\n",
          out);
}

static const struct option *find_serve_option(const struct command *command, struct slice flag)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].commands & command->bit) && slice_is(flag, options[i].flag))
            return &options[i];
    return NULL;
}

static bool report_unknown_serve_option(const struct command_line *line, struct slice flag)
{
    struct nearest nearest = nearest_to(flag);
    FILE *err = line->surroundings->err;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].commands & line->command->bit) && options[i].help)
            nearest_offer(&nearest, slice_of(options[i].flag));
    fprintf(err, "rollcall: %.*s is not an option of %s", SLICE_FORMAT(flag), line->command->name);
    if (nearest.best.len > 0)
        fprintf(err, "; did you mean %.*s?", SLICE_FORMAT(nearest.best));
    fprintf(err, "\nTry 'rollcall %s --help'.\n", line->command->name);
    return false;
}

static void apply_serve_option(struct command_line *line, const struct option *option,
                               const char *value)
{
    switch (option->effect) {
    case SETS_VALUE:
        line->flags[line->flag_count++] = (struct config_flag){
            .flag = option->flag, .setting = option->setting, .value = value ? value : "true"};
        break;
    case NAMES_FILE:
        line->file = value;
        break;
    case ASSIGNS:
        line->assignments[line->assignment_count++] = value;
        break;
    case PRINTS_CONFIG:
        line->prints_config = true;
        break;
    case PRINTS_REFERENCE:
        line->prints_reference = true;
        break;
    case PRINTS_HELP:
        line->prints_help = true;
        break;
    }
}

/* Parses the option at argv[*at]; its value follows "=" or is the next argument. */
static bool parse_serve_option(struct command_line *line, int argc, char **argv, int *at)
{
    struct slice flag;
    struct slice attached = slice_split(slice_of(argv[*at]), '=', &flag);
    const struct option *option = find_serve_option(line->command, flag);
    const char *value = attached.data;
    if (!option)
        return report_unknown_serve_option(line, flag);
    if (option->argument && !value && *at + 1 < argc)
        value = argv[++*at];
    if (option->argument ? !value : value != NULL) {
        fprintf(line->surroundings->err, "rollcall: %s %s%s\n", option->flag,
                option->argument ? "needs a value: " : "takes no value",
                option->argument ? option->argument : "");
        return false;
    }
    apply_serve_option(line, option, value);
    return true;
}

/* These return what the command needs and the configuration lacks; NULL if nothing. */

static const char *missing_for_gateway(const struct config *config)
{
    bool has_keys = config->auth.dev || config->auth.keys_file[0] || config->auth.jwks_url[0] ||
                    config->auth.hmac_secret_file[0];
    return has_keys ? NULL
                    : "no keys to verify tokens with: give --jwt-keys FILE "
                      "(auth.keys_file) or auth.jwks_url, or --dev on a laptop";
}

static const char *missing_for_ledger(const struct config *config)
{
    if (config->peer.listen[0] == '\0')
        return "ledger needs --peer-listen HOST:PORT (peer.listen)";
    if (config->peer.secret[0] == '\0')
        return "ledger needs peer.secret, the same as its gateways have";
    return NULL;
}

static const char *missing_for_aggregate(const struct config *config)
{
    if (config->peer.listen[0] == '\0')
        return "aggregate needs --peer-listen HOST:PORT (peer.listen)";
    if (config->peer.secret[0] == '\0')
        return "aggregate needs peer.secret, the same as its gateways have";
    if (slice_is(slice_of(config->state.url), "memory"))
        return "a state store in memory belongs to one process: aggregate needs --state "
               "redis://HOST:PORT";
    return NULL;
}

/* Aggregators authenticate whoever speaks for a gateway. */
static const char *missing_for_aggregators(const struct config *config)
{
    if (config->state.aggregators.count == 0)
        return NULL;
    if (config->peer.secret[0] == '\0')
        return "--aggregators needs peer.secret, the same as the aggregators have";
    if (config->state.aggregators.count > AGGREGATORS_MAX)
        return "--aggregators (state.aggregators) has too many addresses";
    return NULL;
}

/* Fan-out reaches the gateways through what it shares with them. */
static const char *missing_for_fanout(const struct config *config)
{
    if (!slice_starts_with(slice_of(config->feed.url), SLICE("kafka")))
        return "the local feed is consumed by the gateways: fanout needs --feed kafka://HOST:PORT";
    if (slice_is(slice_of(config->state.url), "memory") && config->state.aggregators.count == 0)
        return "a state store in memory belongs to one process: fanout needs the gateways' "
               "--state redis://HOST:PORT";
    if (config->ledger.url[0] == '\0' ||
        slice_starts_with(slice_of(config->ledger.url), SLICE("sqlite:")))
        return "a SQLite file belongs to one process: fanout needs the gateways' ledger, "
               "--ledger remote://HOST:PORT or dynamodb://REGION";
    return NULL;
}

static const char *missing_serve_requirement(const struct command *command,
                                             const struct config *config)
{
    switch (command->bit) {
    case SERVE: {
        const char *missing = missing_for_gateway(config);
        return missing ? missing : missing_for_aggregators(config);
    }
    case LEDGER:
        return missing_for_ledger(config);
    case FANOUT: {
        const char *missing = missing_for_fanout(config);
        return missing ? missing : missing_for_aggregators(config);
    }
    case AGGREGATE:
        return missing_for_aggregate(config);
    default:
        return NULL;
    }
}

static void write_serve_warnings(const struct config_error *warnings, size_t count, FILE *err)
{
    for (size_t i = 0; i < count; i++)
        fprintf(err, "rollcall: warning: %s\n", warnings[i].text);
}

static enum serve_action load_serve_config(const struct command_line *line, struct config *out)
{
    const struct serve_surroundings *surroundings = line->surroundings;
    struct config_inputs inputs = {.file = line->file,
                                   .environment = surroundings->environment,
                                   .assignments = line->assignments,
                                   .assignment_count = line->assignment_count,
                                   .flags = line->flags,
                                   .flag_count = line->flag_count,
                                   .default_node_id = surroundings->default_node_id};
    struct config_error error, warnings[CONFIG_WARNINGS_MAX];
    if (!config_load(out, &inputs, &error)) {
        fprintf(surroundings->err, "rollcall: %s\n", error.text);
        return SERVE_EXIT_ERROR;
    }
    write_serve_warnings(warnings, config_environment_warnings(surroundings->environment, warnings),
                         surroundings->err);
    write_serve_warnings(warnings, config_warnings(out, warnings), surroundings->err);
    const char *missing =
        line->prints_config ? NULL : missing_serve_requirement(line->command, out);
    if (missing)
        fprintf(surroundings->err, "rollcall: %s\n", missing);
    if (line->prints_config)
        config_print(out, surroundings->out);
    if (!setting_is_explicit(out, "gateway.memory_limit_bytes"))
        out->gateway.memory_limit_bytes = memory_pressure_default_limit("");
    if (!missing && !line->prints_config)
        return SERVE_RUN;
    config_free(out);
    return missing ? SERVE_EXIT_ERROR : SERVE_EXIT_OK;
}

static const struct command *find_serve_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

enum serve_action serve_options_parse(const struct serve_surroundings *surroundings, int argc,
                                      char **argv, struct config *out)
{
    assert(argc > 0);
    struct command_line line = {.command = find_serve_command(argv[0]),
                                .surroundings = surroundings,
                                .assignments = calloc((size_t)argc, sizeof(char *)),
                                .flags = calloc((size_t)argc, sizeof(struct config_flag))};
    enum serve_action action = SERVE_EXIT_OK;
    bool parsed = line.assignments && line.flags;
    assert(line.command);
    *out = (struct config){0};
    if (!parsed)
        fputs("rollcall: out of memory\n", surroundings->err);
    for (int at = 1; at < argc && parsed; at++)
        parsed = parse_serve_option(&line, argc, argv, &at);
    if (!parsed)
        action = SERVE_EXIT_ERROR;
    else if (line.prints_help)
        write_serve_help(line.command, surroundings->out);
    else if (line.prints_reference)
        config_write_reference(surroundings->out);
    else
        action = load_serve_config(&line, out);
    free(line.assignments);
    free(line.flags);
    return action;
}

/* Writes HOST-PID, with a dash for each character that a node id must not contain. */
static void write_default_node_id(char out[NODE_ID_BYTES])
{
    char host[HOST_NAME_KEPT_MAX + 1] = "";
    if (gethostname(host, sizeof(host)) != 0)
        host[HOST_NAME_KEPT_MAX] = '\0'; /* truncated or empty */
    for (char *c = host; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '-';
    snprintf(out, NODE_ID_BYTES, "%s-%ld", host[0] ? host : "rollcall", (long)getpid());
}

int serve_options_run(int argc, char **argv, serve_run run)
{
    char node_id[NODE_ID_BYTES];
    struct config config;
    struct serve_surroundings surroundings = {
        .out = stdout, .err = stderr, .environment = environ, .default_node_id = node_id};
    write_default_node_id(node_id);
    switch (serve_options_parse(&surroundings, argc, argv, &config)) {
    case SERVE_EXIT_OK:
        return 0;
    case SERVE_EXIT_ERROR:
        return SERVE_EXIT_STATUS_USAGE;
    case SERVE_RUN:
        break;
    }
    int status = run(&config);
    config_free(&config);
    return status;
}
