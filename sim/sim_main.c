/*
 * rollcall sim: runs simulated worlds, each from its seed (README.md). Each seed runs in a real process of its own.
 *
 * Exit status: 0 all invariants held, 1 one did not, 2 wrong arguments.
 */
#include "disk/disk.h"
#include "log/log.h"
#include "network/socket.h"
#include "world/report.h"
#include "world/trace.h"
#include "world/world.h"
#include "world/world_fleet.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_VIOLATED = 1, EXIT_USAGE = 2, JOBS_MAX = 256 };

struct sim_options {
    struct world_options world;
    uint64_t last_seed;
    unsigned jobs;
    bool traces;
    bool minimises;
    bool ends_at_first;    /* seed that violates something */
    struct report *report; /* NULL: none is wanted */
};

static const char USAGE[] =
    "Usage: rollcall sim [OPTIONS]\n"
    "\n"
    "Runs a whole fleet in one process, in virtual time, with faults drawn from a seed.\n"
    "\n"
    "Options:\n"
    "  --seed N             the seed (default 1)\n"
    "  --seeds FIRST-LAST   many seeds, one after another\n"
    "  --jobs N             so many of them at once (default 1)\n"
    "  --hours H            virtual hours (default 0.5)\n"
    "  --scenario NAME      all: one fault at a time (the default); pairs: often two at once;\n"
    "                       calm: none; the name of a fault: only that one\n"
    "  --gateways N         (default 3)\n"
    "  --users N            (default 30)\n"
    "  --redis KIND         one: a single server (the default); cluster: three masters with replicas\n"
    "  --workers N          of every second gateway (default 1)\n"
    "  --aggregators N      between the gateways and Redis (default 0: none)\n"
    "  --fleet drawn        these three follow from the seed\n"
    "  --profile NAME       realtime, standard or relaxed (timing.profile)\n"
    "  --grace SECONDS      what the truth may take beyond the lease window (default 5)\n"
    "  --first              end after the first seed that violates an invariant\n"
    "  --report             at the end, a table of what was simulated\n"
    "  --trace              print everything that happens\n"
    "  --minimise           of a seed that fails, drop the faults that do not matter, and print the rest\n"
    "  --skip BITS          without these faults (hexadecimal, as --minimise prints them)\n"
    "  --help               print this and exit\n";

const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

/* What OpenSSL and SQLite hold for a process that crashes is not the simulator's to find. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libcrypto\n";
}

/* ---- one run ---- */

/* Of the processor, since the machine may have other work. */
static double read_processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_counts(const struct world *world, double processor_s, FILE *out)
{
    double virtual_s = (double)kernel_now_us() / 1e6;
    uint64_t faults = 0;
    for (size_t i = 0; i < FAULT_KIND_COUNT; i++)
        faults += world->faults.counts[i];
    fprintf(out,
            "seed %" PRIu64 ": %s hash %016" PRIx64
            ", %.0f s in %.2f s of processor (%.0f x), %" PRIu64 " steps, %" PRIu64
            " faults, %" PRIu64 " sent, %" PRIu64 " delivered, %" PRIu64
            " told, truth p99 %.1f s worst %.1f s\n",
            world->options.seed, world->is_violated ? "VIOLATED" : "held", trace_hash(), virtual_s,
            processor_s, virtual_s / processor_s, kernel_turns(), faults,
            world->counts.acknowledged, world->counts.delivered, world->counts.told,
            (double)report_find_percentile_us(world->delays[LIE_GHOST].counts, 990) / 1e6,
            (double)world->delays[LIE_GHOST].worst_us / 1e6);
}

static void print_violation(const struct world *world, FILE *out)
{
    trace_print(out);
    fprintf(out, "seed %" PRIu64 " violates %s\n  %s\n  %s\n", world->options.seed,
            invariant_name(world->violated), invariant_sentence(world->violated), world->violation);
}

/* Returns 0 if everything held, else a number for the invariant that did not. `out` NULL: says nothing. */
static int run_seed(const struct world_options *options, const struct sim_options *sim, FILE *out)
{
    static struct world world; /* too large for a stack */
    double started_s = read_processor_s();
    trace_open(sim->traces ? out : NULL);
    bool held = world_run(&world, options);
    double processor_s = read_processor_s() - started_s;
    if (!held && out)
        print_violation(&world, out);
    if (out)
        print_counts(&world, processor_s, out);
    if (sim->report)
        report_add(sim->report, &world, (uint64_t)(processor_s * 1000));
    world_free(&world);
    return held ? 0 : EXIT_VIOLATED + (int)world.violated;
}

/* ---- many runs ---- */

/* A process for each seed, since the program has state of its own (its log's limits). */
static pid_t fork_seed(const struct sim_options *options, uint64_t seed, FILE *out)
{
    struct world_options world = options->world;
    world.seed = seed;
    if (out)
        fflush(out);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int status = run_seed(&world, options, out);
    if (out)
        fflush(out);
    exit(status);
}

/* Returns what run_seed() did, or -1 if the run crashed. */
static int wait_for_seed(void)
{
    int status;
    return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool run_seeds(const struct sim_options *options, FILE *out)
{
    bool held = true;
    unsigned running = 0;
    uint64_t failed = 0;
    for (uint64_t seed = options->world.seed; seed <= options->last_seed; seed++) {
        if (running == options->jobs) {
            failed += wait_for_seed() != 0;
            running--;
        }
        if (failed > 0 && options->ends_at_first)
            break;
        fork_seed(options, seed, out);
        running++;
    }
    for (; running > 0; running--)
        failed += wait_for_seed() != 0;
    held = failed == 0;
    if (options->last_seed > options->world.seed)
        fprintf(out, "%" PRIu64 " seeds, %" PRIu64 " violated\n",
                options->last_seed - options->world.seed + 1, failed);
    if (options->report)
        report_print(options->report, out);
    return held;
}

/* ---- minimising ---- */

static int run_silently(const struct sim_options *options)
{
    fork_seed(options, options->world.seed, NULL);
    return wait_for_seed();
}

/* Drops one fault after another, as long as the run violates the same invariant without it. */
static void minimise(struct sim_options *options, FILE *out)
{
    int status = run_silently(options);
    for (unsigned i = 0; i < 64; i++) {
        options->world.skips_faults ^= UINT64_C(1) << i;
        if (run_silently(options) != status)
            options->world.skips_faults ^= UINT64_C(1) << i;
    }
    options->traces = true;
    fprintf(out, "the same with fewer faults: --skip %" PRIx64 "\n", options->world.skips_faults);
    fork_seed(options, options->world.seed, out);
    wait_for_seed();
}

/* ---- arguments ---- */

static bool parse_scenario(struct world_options *options, const char *name)
{
    enum fault_kind kind = fault_find(name);
    unsigned all = (1U << FAULT_KIND_COUNT) - 1;
    options->draws_pairs = strcmp(name, "pairs") == 0;
    if (strcmp(name, "all") == 0 || options->draws_pairs)
        options->fault_kinds = all;
    else if (strcmp(name, "calm") == 0)
        options->fault_kinds = 0;
    else if (kind < FAULT_KIND_COUNT)
        options->fault_kinds = 1U << kind;
    else
        return false;
    return true;
}

static bool parse_seeds(struct sim_options *options, const char *text)
{
    char *end;
    options->world.seed = strtoull(text, &end, 10);
    options->last_seed = *end == '-' ? strtoull(end + 1, &end, 10) : options->world.seed;
    return *end == '\0' && options->last_seed >= options->world.seed;
}

static bool parse_option(struct sim_options *options, int letter, const char *value)
{
    switch (letter) {
    case 's':
        return parse_seeds(options, value);
    case 'j':
        options->jobs = (unsigned)strtoul(value, NULL, 10);
        return options->jobs > 0 && options->jobs <= JOBS_MAX;
    case 'h':
        options->world.duration_us = (int64_t)(strtod(value, NULL) * 3600e6);
        return options->world.duration_us > WORLD_QUIET_US;
    case 'c':
        return parse_scenario(&options->world, value);
    case 'g':
        options->world.gateways = strtoul(value, NULL, 10);
        return options->world.gateways > 0 && options->world.gateways <= WORLD_GATEWAYS_MAX;
    case 'u':
        options->world.users = strtoul(value, NULL, 10);
        return options->world.users >= POPULATION_CHAT_MEMBERS;
    case 'R':
        options->world.fleet.has_cluster = strcmp(value, "cluster") == 0;
        return options->world.fleet.has_cluster || strcmp(value, "one") == 0;
    case 'w':
        options->world.fleet.workers = strtoul(value, NULL, 10);
        return options->world.fleet.workers > 0 &&
               options->world.fleet.workers <= WORLD_WORKERS_MAX;
    case 'a':
        options->world.fleet.aggregators = strtoul(value, NULL, 10);
        return options->world.fleet.aggregators <= WORLD_AGGREGATORS_MAX;
    case 'F':
        options->world.draws_fleet = strcmp(value, "drawn") == 0;
        return options->world.draws_fleet;
    case 'p':
        options->world.profile = value;
        return true;
    case 'r':
        options->world.grace_us = (int64_t)(strtod(value, NULL) * 1e6);
        return true;
    case 'k':
        options->world.skips_faults = strtoull(value, NULL, 16);
        return true;
    case 't':
        return options->traces = true;
    case 'f':
        return options->ends_at_first = true;
    case 'o':
        return (options->report = report_share()) != NULL;
    case 'm':
        return options->minimises = true;
    default:
        return false;
    }
}

/* A scenario of one fault needs a fleet that can have it. */
static bool has_what_faults_hit(const struct world_options *options)
{
    unsigned possible = world_fleet_faults(&options->fleet);
    return options->fault_kinds == 0 || options->draws_fleet || options->fault_kinds & possible;
}

static bool parse_options(struct sim_options *options, int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"seed", required_argument, NULL, 's'},
        {"seeds", required_argument, NULL, 's'},
        {"jobs", required_argument, NULL, 'j'},
        {"hours", required_argument, NULL, 'h'},
        {"scenario", required_argument, NULL, 'c'},
        {"gateways", required_argument, NULL, 'g'},
        {"users", required_argument, NULL, 'u'},
        {"profile", required_argument, NULL, 'p'},
        {"skip", required_argument, NULL, 'k'},
        {"grace", required_argument, NULL, 'r'},
        {"trace", no_argument, NULL, 't'},
        {"minimise", no_argument, NULL, 'm'},
        {"report", no_argument, NULL, 'o'},
        {"first", no_argument, NULL, 'f'},
        {"redis", required_argument, NULL, 'R'},
        {"workers", required_argument, NULL, 'w'},
        {"aggregators", required_argument, NULL, 'a'},
        {"fleet", required_argument, NULL, 'F'},
        {"help", no_argument, NULL, '?'},
        {0},
    };
    int letter;
    while ((letter = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1)
        if (!parse_option(options, letter, optarg))
            return false;
    return optind == argc && has_what_faults_hit(&options->world);
}

int main(int argc, char **argv)
{
    struct sim_options options = {
        .world = {.seed = 1,
                  .duration_us = INT64_C(1800000000),
                  .gateways = 3,
                  .users = 30,
                  .fleet = {.workers = 1},
                  .profile = "realtime",
                  .grace_us = INVARIANTS_GRACE_US,
                  .fault_kinds = (1U << FAULT_KIND_COUNT) - 1},
        .last_seed = 1,
        .jobs = 1,
    };
    if (!parse_options(&options, argc, argv)) {
        fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    FILE *out = fdopen(dup(STDOUT_FILENO), "w");
    if (!out || !freopen("/dev/null", "w", stdout)) /* servers print their addresses */
        return EXIT_USAGE;
    disk_register();
    bool held = run_seeds(&options, out);
    if (!held && options.minimises)
        minimise(&options, out);
    fclose(out);
    return held ? 0 : EXIT_VIOLATED;
}
