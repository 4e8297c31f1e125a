/*
 * A setting is one row of a table: all that is known about one value an operator may choose.
 * Nothing else in the program knows a setting's name, bounds or default, so that adding one is
 * adding a field to struct config and a row to setting_table.c.
 *
 * The table is constant; every function here is pure but for the struct config it is given.
 */
#ifndef ROLLCALL_CONFIG_SETTING_H
#define ROLLCALL_CONFIG_SETTING_H

#include "base/buffer.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/setting_rule.h"

enum setting_type {                  /* field in struct config */
                    SETTING_BOOL,    /* bool */
                    SETTING_COUNT,   /* uint32_t */
                    SETTING_BYTES,   /* size_t; may be written with KiB, MiB, GiB */
                    SETTING_SECONDS, /* int64_t in milliseconds; written in seconds, with decimals
                                      */
                    SETTING_MILLISECONDS, /* int64_t */
                    SETTING_CHOICE,       /* an enum that counts from 0 in the order of `choices` */
                    SETTING_TEXT,         /* const char *, owned */
                    SETTING_LIST,         /* struct config_list, owned */
};

struct setting {
    const char *name; /* dotted: sections, then the key */
    enum setting_type type;
    size_t offset;       /* into struct config */
    const char *initial; /* the default, as a user would write it */
    int64_t min;         /* bounds of a number, in the field's unit, both allowed */
    int64_t max;
    const char *const *choices; /* NULL-terminated */
    const struct setting_rule
        *rule;        /* what a text, or each item of a list, must keep to; NULL: none */
    bool secret;      /* never shown */
    bool login;       /* a URL that may hold one: not shown where it does */
    const char *help; /* one sentence */
};

enum setting_result { SETTING_STORED, SETTING_REFUSED, SETTING_NO_MEMORY };

/* The table, in the order of the reference: the rows of a section stand together. */
size_t setting_count(void);
const struct setting *setting_at(size_t index);
size_t setting_index(const struct setting *setting);

/* By full name; NULL when there is none. */
const struct setting *setting_find(struct slice name);

/* Whether some setting's name starts with `name` and a dot. */
bool setting_is_section(struct slice name);

/* The setting or section that `name` was probably meant to be; SLICE_NONE when nothing is near. */
struct slice setting_nearest(struct slice name);

/* Whether any source but the default gave the value. `name` must exist. */
bool setting_is_explicit(const struct config *config, const char *name);

/* Parses `text` and stores it; the old value is freed. A list's items stand between commas. */
enum setting_result setting_store(const struct setting *setting, struct config *config,
                                  struct slice text);

/* Adds one item to a list. Refuses an empty one, and more than CONFIG_LIST_ITEMS_MAX. */
enum setting_result setting_append(const struct setting *setting, struct config *config,
                                   struct slice item);

/* Whether this value of the setting is for nobody's eyes. */
bool setting_hides(const struct setting *setting, struct slice value);

/* The value of a setting that is a number, in the field's unit. */
int64_t setting_number(const struct setting *setting, const struct config *config);

/* What the setting accepts, as a phrase: "an integer from 1 to 64". */
void setting_write_expected(struct buffer *out, const struct setting *setting);

/* The value as YAML on one line, such that setting_store() gives it back. Shows secrets. */
void setting_write_value(struct buffer *out, const struct setting *setting,
                         const struct config *config);

/* A number of the setting in the unit it is written in: 1500 ms of a SETTING_SECONDS is "1.5". */
void setting_write_number(struct buffer *out, const struct setting *setting, int64_t value);

/* Frees what the field owns and zeroes it. */
void setting_release(const struct setting *setting, struct config *config);

#endif
