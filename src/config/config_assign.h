/*
 * The only way for a value to enter the configuration, whatever its source, and its error messages.
 * Every message starts with the place, so that an operator knows where to look: "rollcall.yaml:7:
 * gateway.workers", "ROLLCALL_GATEWAY__WORKERS", "--workers".
 */
#ifndef ROLLCALL_CONFIG_CONFIG_ASSIGN_H
#define ROLLCALL_CONFIG_CONFIG_ASSIGN_H

#include "base/slice.h"
#include "config/config.h"
#include "config/setting.h"

#define CONFIG_ENVIRONMENT_PREFIX "ROLLCALL_"

/* Where a value is given. Borrows its texts. */
struct config_place {
    enum config_source source;
    const char *label; /* name of the file or variable, the flag as typed, or "--set" */
    unsigned line;     /* in a file */
};

/* Moves the text into the error, cut to what fits, and frees it. Returns false. */
bool config_fail_text(struct config_error *error, struct buffer *text);

/* Writes "PLACE: MESSAGE". Returns false, so that a caller can return it. */
bool config_fail(struct config_error *error, const struct config_place *place, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Says that there is no setting or section of that name, and suggests the nearest. Returns
 * false. */
bool config_fail_unknown(struct config_error *error, const struct config_place *place,
                         struct slice name);

/* Says that a YAML node of this kind ("a list", "a mapping") is not a value of the setting, and
 * what it accepts. Returns false. */
bool config_fail_found(struct config_error *error, const struct config_place *place,
                       const struct setting *setting, const char *found);

/* Stores a value of the setting and its origin. For a list, config_assign_empty_list() empties it
 * and config_assign_item() adds an item. Return false, with *error set, if the value is refused. */
bool config_assign(struct config *config, const struct config_place *place,
                   const struct setting *setting, struct slice text, struct config_error *error);
void config_assign_empty_list(struct config *config, const struct config_place *place,
                              const struct setting *setting);
bool config_assign_item(struct config *config, const struct config_place *place,
                        const struct setting *setting, struct slice item,
                        struct config_error *error);

#endif
