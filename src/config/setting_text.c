/* Writes settings as text: their values, their bounds, what they accept. */
#include "config/setting.h"

#include <inttypes.h>
#include <string.h>

void setting_write_number(struct buffer *out, const struct setting *setting, int64_t value)
{
    int64_t whole = value, thousandths = 0;
    if (setting->type == SETTING_SECONDS) {
        whole = value / 1000;
        thousandths = value % 1000;
    }
    buffer_append_int(out, whole);
    if (thousandths == 0)
        return;
    int width = 3;
    for (; thousandths % 10 == 0; thousandths /= 10)
        width--;
    buffer_printf(out, ".%0*" PRId64, width, thousandths);
}

static void write_setting_expected_number(struct buffer *out, const struct setting *setting)
{
    static const char *const phrases[] = {
        [SETTING_COUNT] = "an integer",
        [SETTING_BYTES] = "a number of bytes (KiB, MiB and GiB may follow)",
        [SETTING_SECONDS] = "seconds (decimals allowed)",
        [SETTING_MILLISECONDS] = "milliseconds",
    };
    buffer_append_text(out, phrases[setting->type]);
    buffer_append_text(out, " from ");
    setting_write_number(out, setting, setting->min);
    buffer_append_text(out, " to ");
    setting_write_number(out, setting, setting->max);
}

void setting_write_expected(struct buffer *out, const struct setting *setting)
{
    const char *const *choices = setting->choices;
    switch (setting->type) {
    case SETTING_BOOL:
        buffer_append_text(out, "true or false");
        break;
    case SETTING_CHOICE:
        for (size_t i = 0; choices[i]; i++) {
            if (i > 0)
                buffer_append_text(out, choices[i + 1] ? ", " : " or ");
            buffer_append_text(out, choices[i]);
        }
        break;
    case SETTING_TEXT:
        buffer_append_text(out, setting->rule ? setting->rule->expected
                                              : "UTF-8 text without control characters");
        break;
    case SETTING_LIST:
        buffer_append_text(out, "a list, each item ");
        buffer_append_text(out, setting->rule ? setting->rule->expected : "text");
        break;
    default:
        write_setting_expected_number(out, setting);
    }
}

/* Writes double-quoted YAML. Texts contain no control characters, so only these two need
 * escaping. */
static void write_setting_quoted(struct buffer *out, const char *text)
{
    buffer_append_byte(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, *text);
    }
    buffer_append_byte(out, '"');
}

bool setting_hides(const struct setting *setting, struct slice value)
{
    return setting->secret || (setting->login && memchr(value.data, '@', value.len));
}

void setting_write_value(struct buffer *out, const struct setting *setting,
                         const struct config *config)
{
    const void *field = (const char *)config + setting->offset;
    const struct config_list *list = field;
    switch (setting->type) {
    case SETTING_BOOL:
        buffer_append_text(out, *(const bool *)field ? "true" : "false");
        break;
    case SETTING_CHOICE:
        buffer_append_text(out, setting->choices[*(const unsigned *)field]);
        break;
    case SETTING_TEXT:
        write_setting_quoted(out, *(const char *const *)field);
        break;
    case SETTING_LIST:
        buffer_append_byte(out, '[');
        for (size_t i = 0; i < list->count; i++) {
            buffer_append_text(out, i > 0 ? ", " : "");
            write_setting_quoted(out, list->items[i]);
        }
        buffer_append_byte(out, ']');
        break;
    default:
        setting_write_number(out, setting, setting_number(setting, config));
    }
}
