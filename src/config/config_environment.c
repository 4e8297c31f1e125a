#include "config/config_environment.h"

#include "config/config_assign.h"

#include <ctype.h>

enum { NAME_SHOWN_MAX = 128 };

/* GATEWAY__LISTEN is gateway.listen. Only upper case is a variable's spelling, so lower case is
 * kept as a letter no setting has. */
static void write_setting_name(struct buffer *out, struct slice variable)
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

static bool read_variable(struct config *config, struct slice name, struct slice value,
                          struct config_error *error)
{
    char label[NAME_SHOWN_MAX];
    snprintf(label, sizeof(label), "%.*s", SLICE_FORMAT(name));
    struct config_place place = {.source = CONFIG_FROM_ENVIRONMENT, .label = label};
    struct buffer setting_name = BUFFER_INIT;
    write_setting_name(&setting_name, slice_after(name, strlen(CONFIG_ENVIRONMENT_PREFIX)));
    const struct setting *setting = setting_find(buffer_slice(&setting_name));
    bool is_read;
    if (setting_name.failed)
        is_read = config_fail(error, &place, "out of memory");
    else if (!setting)
        is_read = config_fail_unknown(error, &place, buffer_slice(&setting_name));
    else
        is_read = config_assign(config, &place, setting, value, error);
    buffer_free(&setting_name);
    return is_read;
}

bool config_environment_read(struct config *config, char *const *environment,
                             struct config_error *error)
{
    for (; environment && *environment; environment++) {
        struct slice name;
        struct slice value = slice_split(slice_of(*environment), '=', &name);
        if (!slice_starts_with(name, SLICE(CONFIG_ENVIRONMENT_PREFIX)))
            continue;
        if (!read_variable(config, name, value, error))
            return false;
    }
    return true;
}
