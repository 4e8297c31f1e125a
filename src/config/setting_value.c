/* Parses and stores the values of settings. */
#include "config/setting.h"

#include "text/utf8.h"

#include <assert.h>
#include <stdlib.h>

static void *setting_field(const struct setting *setting, struct config *config)
{
    return (char *)config + setting->offset;
}

static bool is_setting_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes digits from the front of *text. Returns false if there are none or they exceed int64_t. */
static bool take_setting_digits(struct slice *text, int64_t *value)
{
    size_t used = 0;
    *value = 0;
    for (; used < text->len && is_setting_digit(text->data[used]); used++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, text->data[used] - '0', value))
            return false;
    *text = slice_after(*text, used);
    return used > 0;
}

static bool parse_setting_bytes(struct slice text, int64_t *value)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    if (!take_setting_digits(&text, value))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (slice_is(text, units[i]))
            return !__builtin_mul_overflow(*value, INT64_C(1) << (10 * i), value);
    return false;
}

/* Parses seconds with any number of decimals to the nearest millisecond, without doubles. */
static bool parse_setting_seconds(struct slice text, int64_t *ms)
{
    int64_t whole = 0, thousandths = 0;
    bool has_whole = take_setting_digits(&text, &whole);
    if (!has_whole && !slice_starts_with(text, SLICE(".")))
        return false;
    if (text.len > 0) {
        struct slice decimals = slice_after(text, 1);
        if (text.data[0] != '.' || decimals.len == 0)
            return false;
        for (size_t i = 0; i < decimals.len; i++)
            if (!is_setting_digit(decimals.data[i]))
                return false;
        for (size_t i = 0; i < 3; i++)
            thousandths = thousandths * 10 + (i < decimals.len ? decimals.data[i] - '0' : 0);
        if (decimals.len > 3 && decimals.data[3] >= '5')
            thousandths++;
    }
    return !__builtin_mul_overflow(whole, 1000, ms) &&
           !__builtin_add_overflow(*ms, thousandths, ms);
}

static enum setting_result store_number_setting(const struct setting *setting,
                                                struct config *config, struct slice text)
{
    int64_t value;
    bool parsed;
    if (setting->type == SETTING_SECONDS)
        parsed = parse_setting_seconds(text, &value);
    else if (setting->type == SETTING_BYTES)
        parsed = parse_setting_bytes(text, &value);
    else
        parsed = take_setting_digits(&text, &value) && text.len == 0;
    if (!parsed || value < setting->min || value > setting->max)
        return SETTING_REFUSED;
    if (setting->type == SETTING_COUNT)
        *(uint32_t *)setting_field(setting, config) = (uint32_t)value;
    else if (setting->type == SETTING_BYTES)
        *(size_t *)setting_field(setting, config) = (size_t)value;
    else
        *(int64_t *)setting_field(setting, config) = value;
    return SETTING_STORED;
}

static enum setting_result store_choice_setting(const struct setting *setting,
                                                struct config *config, struct slice text)
{
    static_assert(sizeof(enum timing_profile) == sizeof(unsigned),
                  "a choice is stored as unsigned");
    for (unsigned i = 0; setting->choices[i]; i++)
        if (slice_is(text, setting->choices[i])) {
            *(unsigned *)setting_field(setting, config) = i;
            return SETTING_STORED;
        }
    return SETTING_REFUSED;
}

/* Refuses control characters, since texts end up in logs, headers and keys. */
static bool is_acceptable_setting_text(const struct setting *setting, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    return utf8_valid(text) && (!setting->rule || setting->rule->holds(text));
}

static char *copy_setting_text(struct slice text)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        return NULL;
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return copy;
}

static enum setting_result store_text_setting(const struct setting *setting, struct config *config,
                                              struct slice text)
{
    if (!is_acceptable_setting_text(setting, text))
        return SETTING_REFUSED;
    const char *copy = copy_setting_text(text);
    if (!copy)
        return SETTING_NO_MEMORY;
    setting_release(setting, config);
    *(const char **)setting_field(setting, config) = copy;
    return SETTING_STORED;
}

enum setting_result setting_append(const struct setting *setting, struct config *config,
                                   struct slice item)
{
    assert(setting->type == SETTING_LIST);
    struct config_list *list = setting_field(setting, config);
    if (item.len == 0 || list->count == CONFIG_LIST_ITEMS_MAX ||
        !is_acceptable_setting_text(setting, item))
        return SETTING_REFUSED;
    const char **items = realloc(list->items, (list->count + 1) * sizeof(items[0]));
    if (!items)
        return SETTING_NO_MEMORY;
    list->items = items;
    items[list->count] = copy_setting_text(item);
    if (!items[list->count])
        return SETTING_NO_MEMORY;
    list->count++;
    return SETTING_STORED;
}

static enum setting_result store_list_setting(const struct setting *setting, struct config *config,
                                              struct slice text)
{
    enum setting_result result = SETTING_STORED;
    struct slice item, rest = text.len > 0 ? text : SLICE_NONE;
    setting_release(setting, config);
    while (rest.data && result == SETTING_STORED) {
        rest = slice_split(rest, ',', &item);
        while (item.len > 0 && item.data[0] == ' ')
            item = slice_after(item, 1);
        while (item.len > 0 && item.data[item.len - 1] == ' ')
            item.len--;
        result = setting_append(setting, config, item);
    }
    return result;
}

enum setting_result setting_store(const struct setting *setting, struct config *config,
                                  struct slice text)
{
    bool is_true = slice_is(text, "true");
    switch (setting->type) {
    case SETTING_BOOL:
        if (!is_true && !slice_is(text, "false"))
            return SETTING_REFUSED;
        *(bool *)setting_field(setting, config) = is_true;
        return SETTING_STORED;
    case SETTING_CHOICE:
        return store_choice_setting(setting, config, text);
    case SETTING_TEXT:
        return store_text_setting(setting, config, text);
    case SETTING_LIST:
        return store_list_setting(setting, config, text);
    default:
        return store_number_setting(setting, config, text);
    }
}

int64_t setting_number(const struct setting *setting, const struct config *config)
{
    const char *field = (const char *)config + setting->offset;
    switch (setting->type) {
    case SETTING_COUNT:
        return *(const uint32_t *)field;
    case SETTING_BYTES:
        return (int64_t) * (const size_t *)field;
    case SETTING_SECONDS:
    case SETTING_MILLISECONDS:
        return *(const int64_t *)field;
    default:
        assert(!"the setting is a number");
        return 0;
    }
}

void setting_release(const struct setting *setting, struct config *config)
{
    if (setting->type == SETTING_TEXT) {
        const char **text = setting_field(setting, config);
        free((char *)*text);
        *text = NULL;
    } else if (setting->type == SETTING_LIST) {
        struct config_list *list = setting_field(setting, config);
        for (size_t i = 0; i < list->count; i++)
            free((char *)list->items[i]);
        free(list->items);
        *list = (struct config_list){0};
    }
}
