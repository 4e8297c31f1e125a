/* Prints the effective configuration as YAML, for people first and for config_load() second. */
#include "config/config.h"
#include "config/setting.h"

enum { INDENT = 2 };

/* Returns the length of a name up to and including its last dot. */
static size_t config_section_prefix_len(struct slice name)
{
    while (name.len > 0 && name.data[name.len - 1] != '.')
        name.len--;
    return name.len;
}

static void write_config_indent(FILE *out, size_t depth)
{
    fprintf(out, "%*s", (int)(depth * INDENT), "");
}

/* Opens the sections of `name` that do not contain `previous`. Returns the depth of the name. */
static size_t open_config_sections(FILE *out, struct slice previous, struct slice name)
{
    size_t shared = 0; /* leading bytes that the names share in whole sections */
    size_t depth = 0;
    for (size_t i = 0; i < previous.len && i < name.len && previous.data[i] == name.data[i]; i++) {
        if (name.data[i] == '.') {
            shared = i + 1;
            depth++;
        }
    }
    struct slice rest =
        slice_first(slice_after(name, shared), config_section_prefix_len(name) - shared);
    if (depth == 0 && rest.len > 0 && previous.len > 0)
        fputc('\n', out);
    while (rest.len > 0) {
        struct slice section;
        rest = slice_split(rest, '.', &section);
        write_config_indent(out, depth++);
        fprintf(out, "%.*s:\n", SLICE_FORMAT(section));
    }
    return depth;
}

static void print_setting_line(FILE *out, const struct config *config,
                               const struct setting *setting, size_t depth)
{
    const struct config_origin *origin = &config->origins[setting_index(setting)];
    struct slice name = slice_of(setting->name);
    struct slice key = slice_after(name, config_section_prefix_len(name));
    struct buffer value = BUFFER_INIT;
    setting_write_value(&value, setting, config);
    write_config_indent(out, depth);
    if (setting_hides(setting, buffer_slice(&value)))
        fprintf(out, "# %.*s: %s", SLICE_FORMAT(key),
                slice_is(buffer_slice(&value), "\"\"") ? "(empty)" : "(not shown)");
    else
        fprintf(out, "%.*s: %.*s", SLICE_FORMAT(key), (int)value.len, value.data);
    fprintf(out, "  # %s", config_source_name(origin->source));
    if (origin->line > 0)
        fprintf(out, ", line %u", origin->line);
    fputc('\n', out);
    buffer_free(&value);
}

void config_print(const struct config *config, FILE *out)
{
    struct slice previous = SLICE_NONE;
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *setting = setting_at(i);
        struct slice name = slice_of(setting->name);
        size_t depth = open_config_sections(out, previous, name);
        print_setting_line(out, config, setting, depth);
        previous = name;
    }
}
