/* A user's settings as JSON: names of values, and checks of them, which REST resources share. */
#ifndef ROLLCALL_API_SETTINGS_JSON_H
#define ROLLCALL_API_SETTINGS_JSON_H

#include "base/buffer.h"
#include "ledger/ledger.h"
#include "protocol/fields.h"

#include <stdbool.h>

/* Writes the visibilities, "group_adds" and "read_receipts" into an open object. */
void settings_json_write(struct buffer *out, const struct ledger_settings *settings);

/* Writes "display_name" and "avatar_url" into an open object; null if there is none. */
void settings_json_write_appearance(struct buffer *out, const struct ledger_appearance *appearance);

/* The values that a patch points to. */
struct settings_json_values {
    enum ledger_visibility presence;
    enum ledger_visibility last_seen;
    enum ledger_group_adds group_adds;
    bool hides_reads;
    struct slice display_name;
    struct slice avatar_url;
};

/* Reads the settings that are present into `values` and makes `patch` point to them. Texts point into the scanned body.
 * Returns NULL, or what is wrong. */
const char *settings_json_read(const struct fields_scratch *fields,
                               struct settings_json_values *values,
                               struct ledger_settings_patch *patch);

#endif
