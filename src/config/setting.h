/*
 * A setting is one row of a table that describes one value an operator may choose. Name, bounds
 * and default of a setting stand nowhere else, so adding one means adding a field to struct config and
 * a row to setting_table.c.
 *
 * The table is constant; the functions change nothing but the struct config they are given.
 */
#ifndef ROLLCALL_CONFIG_SETTING_H
#define ROLLCALL_CONFIG_SETTING_H

#include "base/buffer.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/setting_rule.h"

enum setting_type {
    /* The comment is the type of the field in struct config. */
    SETTING_BOOL,         /* bool */
    SETTING_COUNT,        /* uint32_t */
    SETTING_BYTES,        /* size_t; may be written with KiB, MiB, GiB */
    SETTING_SECONDS,      /* int64_t in milliseconds; written in seconds, with decimals */
    SETTING_MILLISECONDS, /* int64_t */
    SETTING_CHOICE,       /* an enum that counts from 0 in the order of `choices` */
    SETTING_TEXT,         /* const char *, owned */
    SETTING_LIST,         /* struct config_list, owned */
};

struct setting {
    const char *name; /* dotted: sections, then the key */
    enum setting_type type;
    size_t offset;       /* into struct config */
    const char *initial; /* the default, as a user writes it */
    int64_t min;         /* inclusive bounds of a number, in the unit of the field */
    int64_t max;
    const char *const *choices;      /* NULL-terminated */
    const struct setting_rule *rule; /* for a text, or each item of a list; NULL: none */
    bool secret;                     /* never shown */
    bool mappings;                   /* of a list: an item may be a mapping with a `url` */
    bool login;                      /* a URL that may contain a password: not shown if it does */
    const char *help;                /* one sentence */
};

enum setting_result { SETTING_STORED, SETTING_REFUSED, SETTING_NO_MEMORY };

/* The table, in the order of the reference: the rows of a section are adjacent. */
size_t setting_count(void);
const struct setting *setting_at(size_t index);
size_t setting_index(const struct setting *setting);

/* Finds a setting by its full name; NULL if there is none. */
const struct setting *setting_find(struct slice name);

/* Returns whether the name of a setting starts with `name` and a dot. */
bool setting_is_section(struct slice name);

/* Returns the setting or section nearest to `name`; SLICE_NONE if none is near. */
struct slice setting_nearest(struct slice name);

/* Returns whether a source other than the default gave the value. `name` must exist. */
bool setting_is_explicit(const struct config *config, const char *name);

/* Parses `text` and stores it; the old value is freed. Commas separate the items of a list. */
enum setting_result setting_store(const struct setting *setting, struct config *config,
                                  struct slice text);

/* Adds one item to a list. Refuses an empty item and more than CONFIG_LIST_ITEMS_MAX. */
enum setting_result setting_append(const struct setting *setting, struct config *config,
                                   struct slice item);

/* Returns whether this value of the setting must not be shown. */
bool setting_hides(const struct setting *setting, struct slice value);

/* Returns the value of a numeric setting, in the unit of the field. */
int64_t setting_number(const struct setting *setting, const struct config *config);

/* Writes what the setting accepts, as a phrase: "an integer from 1 to 64". */
void setting_write_expected(struct buffer *out, const struct setting *setting);

/* Writes the value as YAML on one line, as setting_store() accepts it. Shows secrets. */
void setting_write_value(struct buffer *out, const struct setting *setting,
                         const struct config *config);

/* Writes a number in the unit that users write: 1500 ms of a SETTING_SECONDS is "1.5". */
void setting_write_number(struct buffer *out, const struct setting *setting, int64_t value);

/* Frees what the field owns and zeroes it. */
void setting_release(const struct setting *setting, struct config *config);

#endif
