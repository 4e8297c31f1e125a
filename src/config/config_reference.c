/* Writes docs/CONFIGURATION.md from the table of settings. */
#include "config/config.h"
#include "config/setting.h"

static const char *const introduction =
    "# Configuration\n"
    "\n"
    "`rollcall serve --config-reference` writes this page from the table in\n"
    "`src/config/setting_table.c`; a test fails when the two differ.\n"
    "\n"
    "Every setting has one name. It is a key of the YAML file (`--config FILE`; sections may be nested\n"
    "or written with dots), the `KEY` of `--set KEY=VALUE`, and, in upper case with `ROLLCALL_` in\n"
    "front and `__` for each dot, an environment variable:\n"
    "\n"
    "```yaml\n"
    "gateway:\n"
    "  listen: 0.0.0.0:8080\n"
    "  allowed_origins: [https://app.example.org]\n"
    "presence.idle_seconds: 120\n"
    "```\n"
    "\n"
    "```\n"
    "rollcall serve --set presence.idle_seconds=120\n"
    "ROLLCALL_PRESENCE__IDLE_SECONDS=120 rollcall serve\n"
    "```\n"
    "\n"
    "If several sources name a setting, a flag wins over `--set`, `--set` over the environment, the\n"
    "environment over the file, and the file over the default; of two `--set` the later wins. A wrong\n"
    "name or value in any source prevents the start, with an error that says where it is and what was\n"
    "expected. There is one exception: a variable `ROLLCALL_…` without `__` whose name resembles no\n"
    "setting (such as `ROLLCALL_SERVICE_HOST`) belongs to something else and is ignored with a warning.\n"
    "`rollcall serve --print-config` shows the effective configuration and where each value came from.\n"
    "\n"
    "Seconds take decimals (`0.3`). Bytes may be followed by `KiB`, `MiB` or `GiB`. A list is a YAML\n"
    "list, or its items with commas between them.\n"
    "\n"
    "## Settings that depend on others\n"
    "\n"
    "An unset value adapts to those that are set. `timing.profile` chooses three values:\n"
    "\n"
    "| profile | heartbeat interval | heartbeat timeout | expiry window |\n"
    "|---|---|---|---|\n"
    "| `realtime` | 5 s | 10 s | 15 s |\n"
    "| `standard` | 30 s | 40 s | 45 s |\n"
    "| `relaxed` | 30 s | 60 s | 90 s |\n"
    "\n"
    "Each of the three may be set alone. If a value of the profile then contradicts it, that value is\n"
    "adapted: the timeout becomes two thirds of a shorter expiry window or twice a longer interval, the\n"
    "expiry window one and a half times a longer timeout, the interval half of a shorter timeout. Likewise\n"
    "an unset burst is at least its rate, the unset limit on all commands is at least the limit on\n"
    "messages, and an unset outbound threshold keeps warning below critical. `dev` turns on `auth.dev`.\n";

struct chapter {
    const char *section;
    const char *title;
};

/* A chapter begins at the first setting of its section; settings without a section come first. */
static const struct chapter chapters[] = {
    {"", "General"},
    {"timing", "Timing"},
    {"gateway", "Gateway"},
    {"gateway.tls", "TLS"},
    {"gateway.http", "HTTP"},
    {"gateway.backpressure", "Backpressure"},
    {"gateway.circuit_breaker", "Circuit breaker"},
    {"gateway.timeouts", "Time limits"},
    {"gateway.shutdown", "Shutdown"},
    {"presence", "Presence"},
    {"typing", "Typing"},
    {"call", "Calls"},
    {"auth", "Authentication"},
    {"state", "Backends"},
    {"peer", "Peer links"},
    {"socketio", "Socket.IO"},
    {"durability", "Durability"},
    {"fanout", "Fan-out"},
    {"debug", "Debugging and logs"},
};

/* Returns the title of the chapter that begins at this row, or NULL. */
static const char *chapter_beginning_at(size_t index)
{
    for (size_t i = 0; i < sizeof(chapters) / sizeof(chapters[0]); i++) {
        struct slice section = slice_of(chapters[i].section);
        size_t first = 0;
        while (first < setting_count() &&
               !(slice_starts_with(slice_of(setting_at(first)->name), section) &&
                 (section.len == 0 || setting_at(first)->name[section.len] == '.')))
            first++;
        if (first == index)
            return chapters[i].title;
    }
    return NULL;
}

void config_write_reference(FILE *out)
{
    fputs(introduction, out);
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *setting = setting_at(i);
        const char *title = chapter_beginning_at(i);
        if (title)
            fprintf(out, "\n## %s\n\n| name | default | accepts | meaning |\n|---|---|---|---|\n",
                    title);
        struct buffer expected = BUFFER_INIT;
        setting_write_expected(&expected, setting);
        fprintf(out, "| `%s` | ", setting->name);
        if (setting->initial[0] == '\0')
            fputs(setting->type == SETTING_LIST ? "`[]`" : "empty", out);
        else
            fprintf(out, "`%s`", setting->initial);
        fprintf(out, " | %.*s | %s%s |\n", (int)expected.len, expected.data, setting->help,
                setting->secret ? " Never shown." : "");
        buffer_free(&expected);
    }
}
