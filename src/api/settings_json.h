/* A user's settings as JSON: the names of visibilities, which REST resources share. */
#ifndef ROLLCALL_API_SETTINGS_JSON_H
#define ROLLCALL_API_SETTINGS_JSON_H

#include "base/buffer.h"
#include "ledger/ledger.h"

#include <stdbool.h>

/* Writes "presence_visibility" and "last_seen_visibility" into an open object. */
void settings_json_write(struct buffer *out, const struct ledger_settings *settings);

/* Reads the name of a visibility. Returns false when there is none with this name. */
bool settings_json_parse(struct slice name, enum ledger_visibility *out);

#endif
