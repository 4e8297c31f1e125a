/*
 * load: drives one server with one job and prints its cost as one line of JSON.
 *
 *   load JOB --dialect NAME --port PORT --pid PID --tokens FILE --star TOKEN --clients N [...]
 *
 * The token file has one token a line, at least N. See jobs.h for the jobs, dialect.h for the
 * servers; bench/run runs all combinations and makes the table.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "jobs.h"
#include "tokens.h"

struct command_line {
    struct job_settings settings;
    const char *token_file;
    const char *star_token;
};

static const struct option options[] = {
    {"dialect", required_argument, NULL, 'd'}, {"port", required_argument, NULL, 'p'},
    {"pid", required_argument, NULL, 'i'},     {"tokens", required_argument, NULL, 't'},
    {"star", required_argument, NULL, 's'},    {"clients", required_argument, NULL, 'n'},
    {"active", no_argument, NULL, 'a'},        {"messages", required_argument, NULL, 'm'},
    {"changes", required_argument, NULL, 'c'}, {"rate", required_argument, NULL, 'r'},
    {"seconds", required_argument, NULL, 'e'}, {NULL, 0, NULL, 0},
};

static void command_line_set(struct command_line *line, int option, const char *value)
{
    struct job_settings *settings = &line->settings;
    switch (option) {
    case 'd':
        settings->dialect = dialect_find(value);
        break;
    case 'p':
        settings->server_port = (uint16_t)strtoul(value, NULL, 10);
        break;
    case 'i':
        settings->server_process = (pid_t)strtoul(value, NULL, 10);
        break;
    case 't':
        line->token_file = value;
        break;
    case 's':
        line->star_token = value;
        break;
    case 'n':
        settings->clients = strtoul(value, NULL, 10);
        break;
    case 'a':
        settings->active = true;
        break;
    case 'm':
        settings->messages = strtoull(value, NULL, 10);
        break;
    case 'c':
        settings->changes = strtoull(value, NULL, 10);
        break;
    case 'r':
        settings->rate = strtoull(value, NULL, 10);
        break;
    case 'e':
        settings->seconds = strtod(value, NULL);
        break;
    default:
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct command_line line = {.settings = {.changes = 20, .rate = 5000, .seconds = 2}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        command_line_set(&line, option, optarg);
    struct job_settings *settings = &line.settings;
    const struct job_kind *job = optind + 1 == argc ? job_find(argv[optind]) : NULL;
    if (job == NULL)
        cost_fail("name one job: idle, echo, fanout, connect or flat");
    if (settings->dialect == NULL || settings->server_port == 0 || settings->server_process == 0 ||
        settings->clients == 0 || line.token_file == NULL || line.star_token == NULL)
        cost_fail("--dialect, --port, --pid, --tokens, --star and --clients are required");
    cost_raise_descriptor_limit();
    const char **tokens = tokens_read(line.token_file, settings->clients);
    tokens[settings->clients] = line.star_token;
    settings->tokens = tokens;
    job->run(settings);
    tokens_free(&tokens, settings->clients);
    return 0;
}
