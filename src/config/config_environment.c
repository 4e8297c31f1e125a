#include "config/config_environment.h"

#include "config/config_assign.h"

#include <ctype.h>

enum { NAME_SHOWN_MAX = 128 };

/* GATEWAY__LISTEN becomes gateway.listen. Lower case is not allowed in a variable, so it becomes
 * upper case, which no setting has. */
static void write_environment_setting_name(struct buffer *out, struct slice variable)
{
    for (size_t i = 0; i < variable.len; i++) {
        unsigned char c = (unsigned char)variable.data[i];
        if (c == '_' && i + 1 < variable.len && variable.data[i + 1] == '_') {
            buffer_append_byte(out, '.');
            i++;
        } else {
            buffer_append_byte(out, (char)(isupper(c) ? tolower(c) : toupper(c)));
        }
    }
}

/* A name without a dot that resembles no setting belongs to something else: a test harness, or the
 * ROLLCALL_SERVICE_HOST that Kubernetes sets in pods beside a service with our name. */
static bool is_foreign_environment_variable(struct slice setting_name)
{
    return !setting_find(setting_name) && setting_nearest(setting_name).len == 0 &&
           (setting_name.len == 0 || !memchr(setting_name.data, '.', setting_name.len));
}

static bool read_environment_variable(struct config *config, struct slice name, struct slice value,
                                      struct config_error *error)
{
    char label[NAME_SHOWN_MAX];
    snprintf(label, sizeof(label), "%.*s", SLICE_FORMAT(name));
    struct config_place place = {.source = CONFIG_FROM_ENVIRONMENT, .label = label};
    struct buffer setting_name = BUFFER_INIT;
    write_environment_setting_name(&setting_name,
                                   slice_after(name, strlen(CONFIG_ENVIRONMENT_PREFIX)));
    const struct setting *setting = setting_find(buffer_slice(&setting_name));
    bool is_read;
    if (setting_name.failed)
        is_read = config_fail(error, &place, "out of memory");
    else if (setting)
        is_read = config_assign(config, &place, setting, value, error);
    else
        is_read = is_foreign_environment_variable(buffer_slice(&setting_name)) ||
                  config_fail_unknown(error, &place, buffer_slice(&setting_name));
    buffer_free(&setting_name);
    return is_read;
}

/* Returns the name of a variable with our prefix, else SLICE_NONE; sets *value. */
static struct slice split_environment_variable(const char *variable, struct slice *value)
{
    struct slice name;
    *value = slice_split(slice_of(variable), '=', &name);
    return slice_starts_with(name, SLICE(CONFIG_ENVIRONMENT_PREFIX)) ? name : SLICE_NONE;
}

bool config_environment_read(struct config *config, char *const *environment,
                             struct config_error *error)
{
    for (; environment && *environment; environment++) {
        struct slice value;
        struct slice name = split_environment_variable(*environment, &value);
        if (name.data && !read_environment_variable(config, name, value, error))
            return false;
    }
    return true;
}

size_t config_environment_warnings(char *const *environment,
                                   struct config_error out[CONFIG_WARNINGS_MAX])
{
    size_t count = 0;
    for (; environment && *environment && count < CONFIG_WARNINGS_MAX; environment++) {
        struct slice value;
        struct slice name = split_environment_variable(*environment, &value);
        struct buffer setting_name = BUFFER_INIT;
        if (!name.data)
            continue;
        write_environment_setting_name(&setting_name,
                                       slice_after(name, strlen(CONFIG_ENVIRONMENT_PREFIX)));
        if (!setting_name.failed && is_foreign_environment_variable(buffer_slice(&setting_name))) {
            struct slice shown = slice_first(name, NAME_SHOWN_MAX);
            snprintf(out[count++].text, sizeof(out->text), "%.*s names no setting and is ignored",
                     SLICE_FORMAT(shown));
        }
        buffer_free(&setting_name);
    }
    return count;
}
