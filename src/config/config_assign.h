/*
 * The one door through which a value enters the configuration, whatever its source, and the words
 * for what can go wrong there. Every message starts with the place, so that an operator knows where
 * to look: "rollcall.yaml:7: gateway.workers", "ROLLCALL_GATEWAY__WORKERS", "--workers".
 */
#ifndef ROLLCALL_CONFIG_CONFIG_ASSIGN_H
#define ROLLCALL_CONFIG_CONFIG_ASSIGN_H

#include "base/slice.h"
#include "config/config.h"
#include "config/setting.h"

#define CONFIG_ENVIRONMENT_PREFIX "ROLLCALL_"

/* Borrows its texts. */
struct config_place {
    enum config_source source;
    const char *label; /* the file's name, the variable's, the flag as typed; "--set" */
    unsigned line;     /* in a file */
};

/* Writes "PLACE: MESSAGE" and returns false, so that a caller can return it. */
bool config_fail(struct config_error *error, const struct config_place *place, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Says that there is no setting or section of that name, and which one was probably meant. */
bool config_fail_unknown(struct config_error *error, const struct config_place *place,
                         struct slice name);

/* Says that a YAML node of this kind, "a list" or "a mapping", is no value of the setting, and what is. */
bool config_fail_found(struct config_error *error, const struct config_place *place,
                       const struct setting *setting, const char *found);

/* Gives the setting a value and remembers where it came from. For a list, the second empties it and
 * the third adds an item. */
bool config_assign(struct config *config, const struct config_place *place,
                   const struct setting *setting, struct slice text, struct config_error *error);
void config_assign_empty_list(struct config *config, const struct config_place *place,
                              const struct setting *setting);
bool config_assign_item(struct config *config, const struct config_place *place,
                        const struct setting *setting, struct slice item,
                        struct config_error *error);

#endif
