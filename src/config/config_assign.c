#include "config/config_assign.h"

#include <ctype.h>
#include <stdarg.h>

/* A longer value is cut in messages. */
enum { SHOWN_VALUE_MAX = 80 };

static void write_config_place(struct buffer *out, const struct config_place *place)
{
    buffer_append_text(out, place->label);
    if (place->line > 0)
        buffer_printf(out, ":%u", place->line);
    buffer_append_text(out, ": ");
}

bool config_fail_text(struct config_error *error, struct buffer *text)
{
    if (text->failed)
        snprintf(error->text, sizeof(error->text), "out of memory");
    else
        snprintf(error->text, sizeof(error->text), "%.*s", (int)text->len, text->data);
    buffer_free(text);
    return false;
}

bool config_fail(struct config_error *error, const struct config_place *place, const char *format,
                 ...)
{
    struct buffer text = BUFFER_INIT;
    char message[CONFIG_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    write_config_place(&text, place);
    buffer_append_text(&text, message);
    return config_fail_text(error, &text);
}

/* The value is untrusted, so control characters, which could control a terminal, become \xNN. */
static void write_config_value(struct buffer *out, struct slice value)
{
    struct slice shown = slice_first(value, SHOWN_VALUE_MAX);
    buffer_append_byte(out, '"');
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.data[i];
        if (c < 0x20 || c == 0x7f)
            buffer_printf(out, "\\x%02x", c);
        else
            buffer_append_byte(out, (char)c);
    }
    buffer_append_text(out, shown.len < value.len ? "…\"" : "\"");
}

/* In the environment, `gateway.listen` is written as ROLLCALL_GATEWAY__LISTEN. */
static void write_config_name(struct buffer *out, const struct config_place *place,
                              struct slice name)
{
    if (place->source != CONFIG_FROM_ENVIRONMENT) {
        buffer_append_slice(out, name);
        return;
    }
    buffer_append_text(out, CONFIG_ENVIRONMENT_PREFIX);
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '.')
            buffer_append_text(out, "__");
        else
            buffer_append_byte(out, (char)toupper((unsigned char)name.data[i]));
    }
}

bool config_fail_unknown(struct config_error *error, const struct config_place *place,
                         struct slice name)
{
    if (setting_is_section(name))
        return config_fail(error, place, "%.*s is a section; expected one of its settings",
                           SLICE_FORMAT(name));
    struct buffer text = BUFFER_INIT;
    struct slice nearest = setting_nearest(name);
    write_config_place(&text, place);
    buffer_append_text(&text, "there is no setting ");
    write_config_value(&text, name);
    if (nearest.len > 0) {
        buffer_append_text(&text, "; did you mean ");
        write_config_name(&text, place, nearest);
        buffer_append_text(&text, "?");
    } else {
        buffer_append_text(&text, "; expected one that rollcall serve --config-reference lists");
    }
    return config_fail_text(error, &text);
}

static bool fail_config_expected(struct config_error *error, struct buffer *text,
                                 const struct setting *setting)
{
    buffer_append_text(text, "; expected ");
    setting_write_expected(text, setting);
    return config_fail_text(error, text);
}

/* Does not show the text of a secret. */
static bool fail_config_value(struct config_error *error, const struct config_place *place,
                              const struct setting *setting, struct slice value)
{
    struct buffer text = BUFFER_INIT;
    write_config_place(&text, place);
    buffer_append_text(&text, setting->name);
    if (setting_hides(setting, value)) {
        buffer_append_text(&text, " has a wrong value (not shown)");
    } else {
        buffer_append_text(&text, " cannot be ");
        write_config_value(&text, value);
    }
    return fail_config_expected(error, &text, setting);
}

bool config_fail_found(struct config_error *error, const struct config_place *place,
                       const struct setting *setting, const char *found)
{
    struct buffer text = BUFFER_INIT;
    write_config_place(&text, place);
    buffer_printf(&text, "%s cannot be %s", setting->name, found);
    return fail_config_expected(error, &text, setting);
}

static bool check_setting_result(enum setting_result result, const struct config_place *place,
                                 const struct setting *setting, struct slice text,
                                 struct config_error *error)
{
    switch (result) {
    case SETTING_STORED:
        return true;
    case SETTING_REFUSED:
        return fail_config_value(error, place, setting, text);
    default:
        return config_fail(error, place, "out of memory");
    }
}

bool config_assign(struct config *config, const struct config_place *place,
                   const struct setting *setting, struct slice text, struct config_error *error)
{
    config->origins[setting_index(setting)] = (struct config_origin){place->source, place->line};
    return check_setting_result(setting_store(setting, config, text), place, setting, text, error);
}

void config_assign_empty_list(struct config *config, const struct config_place *place,
                              const struct setting *setting)
{
    config->origins[setting_index(setting)] = (struct config_origin){place->source, place->line};
    setting_release(setting, config);
}

bool config_assign_item(struct config *config, const struct config_place *place,
                        const struct setting *setting, struct slice item,
                        struct config_error *error)
{
    return check_setting_result(setting_append(setting, config, item), place, setting, item, error);
}
