#include "app/commands/plan_command.h"

#include "base/buffer.h"
#include "plan/plan_load.h"
#include "plan/plan_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_EXIT_OK = 0, PLAN_EXIT_FAILED = 1, PLAN_EXIT_USAGE = 2 };

struct plan_arguments {
    struct plan_load load;
    const char *costs_file; /* NULL: those compiled in */
    bool json;
    bool help;
    char error[PLAN_LOAD_ERROR_MAX];
};

static int print_plan_help(void)
{
    puts(
        "usage: rollcall plan --users N [OPTIONS]\n"
        "\n"
        "Prints how many edges, aggregators and Redis nodes so many users need, from measured costs, and\n"
        "which resource ends first. Numbers may end with K, M, B (or G), KiB, MiB or GiB.\n");
    plan_load_print_help(stdout);
    puts("  --costs FILE               measured costs (default: those of deploy/costs.json)\n"
         "  --json                     print JSON\n"
         "  --help                     this text\n"
         "\n"
         "  rollcall plan --users 100M --profile standard");
    return PLAN_EXIT_OK;
}

/* Takes the option at argv[i]; returns how many arguments it was, 0 if it is wrong. */
static int parse_plan_option(struct plan_arguments *arguments, int left, char **argv)
{
    const char *name = argv[0];
    if (strcmp(name, "--json") == 0 || strcmp(name, "--help") == 0) {
        *(name[2] == 'j' ? &arguments->json : &arguments->help) = true;
        return 1;
    }
    if (strncmp(name, "--", 2) != 0) {
        snprintf(arguments->error, sizeof(arguments->error), "unexpected argument %.40s", name);
        return 0;
    }
    if (left < 2) {
        snprintf(arguments->error, sizeof(arguments->error), "%.40s: a value is missing", name);
        return 0;
    }
    if (strcmp(name, "--costs") == 0) {
        arguments->costs_file = argv[1];
        return 2;
    }
    return plan_load_set(&arguments->load, name + 2, argv[1], arguments->error) ? 2 : 0;
}

static bool parse_plan_arguments(struct plan_arguments *arguments, int argc, char **argv)
{
    plan_load_init(&arguments->load);
    for (int at = 1, taken; at < argc; at += taken) {
        taken = parse_plan_option(arguments, argc - at, argv + at);
        if (taken == 0)
            return false;
    }
    return arguments->help || plan_load_is_complete(&arguments->load, arguments->error);
}

static bool read_plan_costs(const char *path, struct plan_costs *costs,
                            char error[PLAN_COSTS_ERROR_MAX])
{
    char *text = malloc(PLAN_COSTS_BYTES_MAX);
    FILE *file = fopen(path, "r");
    bool parsed = false;
    snprintf(error, PLAN_COSTS_ERROR_MAX, "cannot be read");
    if (text && file) {
        size_t count = fread(text, 1, PLAN_COSTS_BYTES_MAX, file);
        if (count == PLAN_COSTS_BYTES_MAX)
            snprintf(error, PLAN_COSTS_ERROR_MAX, "is too long");
        else if (!ferror(file))
            parsed = plan_costs_parse(costs, text, count, error);
    }
    if (file)
        fclose(file);
    free(text);
    return parsed;
}

static int print_plan(const struct plan_arguments *arguments, const struct plan_costs *costs)
{
    struct plan plan;
    struct buffer out = {0};
    plan_compute(&plan, &arguments->load, costs);
    if (arguments->json)
        plan_print_json(&plan, &arguments->load, &out);
    else
        plan_print_text(&plan, &arguments->load, &out);
    bool written = !out.failed && fwrite(out.data, 1, out.len, stdout) == out.len;
    buffer_free(&out);
    return written && fflush(stdout) == 0 ? PLAN_EXIT_OK : PLAN_EXIT_FAILED;
}

int plan_command(int argc, char **argv)
{
    struct plan_arguments arguments = {0};
    struct plan_costs costs;
    char error[PLAN_COSTS_ERROR_MAX];
    if (!parse_plan_arguments(&arguments, argc, argv)) {
        fprintf(stderr, "rollcall plan: %s (see rollcall plan --help)\n", arguments.error);
        return PLAN_EXIT_USAGE;
    }
    if (arguments.help)
        return print_plan_help();
    plan_costs_builtin(&costs);
    if (arguments.costs_file && !read_plan_costs(arguments.costs_file, &costs, error)) {
        fprintf(stderr, "rollcall plan: %s: %s\n", arguments.costs_file, error);
        return PLAN_EXIT_FAILED;
    }
    return print_plan(&arguments, &costs);
}
