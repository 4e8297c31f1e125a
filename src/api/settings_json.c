#include "api/settings_json.h"

#include "text/display_name.h"
#include "text/json.h"

_Static_assert(DISPLAY_NAME_CHARACTERS_MAX * 4 <= LEDGER_DISPLAY_NAME_BYTES_MAX,
               "the ledger takes every name");

static const char *const VISIBILITY_NAMES[] = {
    [LEDGER_VISIBLE_CONTACTS_ONLY] = "contacts_only",
    [LEDGER_VISIBLE_EVERYONE] = "everyone",
    [LEDGER_VISIBLE_NOBODY] = "nobody",
};

static const char *const GROUP_ADDS_NAMES[] = {
    [LEDGER_GROUP_ADDS_EVERYONE] = "everyone",
    [LEDGER_GROUP_ADDS_CONTACTS_ONLY] = "contacts_only",
};

enum {
    VISIBILITY_COUNT = sizeof(VISIBILITY_NAMES) / sizeof(VISIBILITY_NAMES[0]),
    GROUP_ADDS_COUNT = sizeof(GROUP_ADDS_NAMES) / sizeof(GROUP_ADDS_NAMES[0]),
};

/* ---- writing ---- */

void settings_json_write(struct buffer *out, const struct ledger_settings *settings)
{
    json_write_key_string(out, SLICE("presence_visibility"),
                          slice_of(VISIBILITY_NAMES[settings->presence]));
    json_write_key_string(out, SLICE("last_seen_visibility"),
                          slice_of(VISIBILITY_NAMES[settings->last_seen]));
    json_write_key_string(out, SLICE("group_adds"),
                          slice_of(GROUP_ADDS_NAMES[settings->group_adds]));
    json_write_key_bool(out, SLICE("read_receipts"), !settings->hides_reads);
}

static void write_optional_text(struct buffer *out, struct slice key, struct slice text)
{
    json_write_key(out, key);
    if (text.len)
        json_write_string(out, text);
    else
        json_write_null(out);
}

void settings_json_write_appearance(struct buffer *out, const struct ledger_appearance *appearance)
{
    write_optional_text(out, SLICE("display_name"), appearance->display_name);
    write_optional_text(out, SLICE("avatar_url"), appearance->avatar_url);
}

/* ---- reading ---- */

/* Sets *present. Returns false when the JSON member is present and not one of the names. */
static bool read_choice(const struct fields_scratch *fields, const char *key,
                        const char *const *names, unsigned count, unsigned *value, bool *present)
{
    struct slice raw = fields_find(fields, key), name;
    *present = raw.data != NULL;
    if (!raw.data)
        return true;
    if (!fields_string(raw, &name))
        return false;
    for (*value = 0; *value < count; (*value)++)
        if (slice_is(name, names[*value]))
            return true;
    return false;
}

static bool read_visibility(const struct fields_scratch *fields, const char *key,
                            enum ledger_visibility *storage, const enum ledger_visibility **chosen)
{
    unsigned value;
    bool present;
    bool valid = read_choice(fields, key, VISIBILITY_NAMES, VISIBILITY_COUNT, &value, &present);
    if (valid && present) {
        *storage = (enum ledger_visibility)value;
        *chosen = storage;
    }
    return valid;
}

static bool read_group_adds(const struct fields_scratch *fields,
                            struct settings_json_values *values,
                            struct ledger_settings_patch *patch)
{
    unsigned value;
    bool present;
    bool valid =
        read_choice(fields, "group_adds", GROUP_ADDS_NAMES, GROUP_ADDS_COUNT, &value, &present);
    if (valid && present) {
        values->group_adds = (enum ledger_group_adds)value;
        patch->group_adds = &values->group_adds;
    }
    return valid;
}

static bool read_read_receipts(const struct fields_scratch *fields,
                               struct settings_json_values *values,
                               struct ledger_settings_patch *patch)
{
    struct slice raw = fields_find(fields, "read_receipts");
    if (!raw.data)
        return true;
    values->hides_reads = slice_is(raw, "false");
    patch->hides_reads = &values->hides_reads;
    return values->hides_reads || slice_is(raw, "true");
}

/* An http or https URL with a host, of printable ASCII as RFC 3986 has it. */
static bool is_avatar_url(struct slice url)
{
    struct slice secure = SLICE("https://"), plain = SLICE("http://");
    if (url.len > LEDGER_AVATAR_URL_BYTES_MAX)
        return false;
    for (size_t i = 0; i < url.len; i++)
        if (url.data[i] <= ' ' || url.data[i] > '~')
            return false;
    return url.len == 0 || (slice_starts_with(url, secure) && url.len > secure.len) ||
           (slice_starts_with(url, plain) && url.len > plain.len);
}

/* null and an empty text remove it. */
static bool read_text(const struct fields_scratch *fields, const char *key,
                      bool (*is_valid)(struct slice text), struct slice *storage,
                      const struct slice **chosen)
{
    struct slice raw = fields_find(fields, key);
    if (!raw.data)
        return true;
    *chosen = storage;
    *storage = SLICE_NONE;
    return slice_is(raw, "null") || (fields_string(raw, storage) && is_valid(*storage));
}

const char *settings_json_read(const struct fields_scratch *fields,
                               struct settings_json_values *values,
                               struct ledger_settings_patch *patch)
{
    *patch = (struct ledger_settings_patch){0};
    if (!read_visibility(fields, "presence_visibility", &values->presence, &patch->presence) ||
        !read_visibility(fields, "last_seen_visibility", &values->last_seen, &patch->last_seen))
        return "presence_visibility and last_seen_visibility are everyone, contacts_only or nobody";
    if (!read_group_adds(fields, values, patch))
        return "group_adds is everyone or contacts_only";
    if (!read_read_receipts(fields, values, patch))
        return "read_receipts is true or false";
    if (!read_text(fields, "display_name", display_name_valid, &values->display_name,
                   &patch->display_name))
        return "display_name has at most 64 characters and no control characters; null removes it";
    if (!read_text(fields, "avatar_url", is_avatar_url, &values->avatar_url, &patch->avatar_url))
        return "avatar_url is an http or https URL of at most 2048 characters; null removes it";
    return NULL;
}
