/*
 * One command under way, and what the commands of all types share: keys that expire, replies in the session's version of the
 * protocol, arguments as numbers.
 */
#ifndef ROLLCALL_SIM_REDIS_MODEL_CALL_H
#define ROLLCALL_SIM_REDIS_MODEL_CALL_H

#include "redis_model/redis_model.h"

struct model_call {
    struct redis_model *model;
    struct redis_session *session; /* NULL in a script */
    const struct slice *args;      /* the command's name is the first */
    size_t count;
    struct buffer *out;
    int resp;
};

typedef void (*model_handler)(struct model_call *call);

struct model_command {
    const char *name;
    model_handler run;
    int arguments_min; /* with the name */
    int arguments_max; /* 0: any number */
    unsigned flags;
};

enum {
    MODEL_WRITES = 1,
    MODEL_NEEDS_MEMORY = 2, /* refused when full */
    MODEL_NO_SCRIPT = 4,
    MODEL_WHILE_LOADING = 8,
    /* which arguments are keys, besides the first */
    MODEL_NO_KEYS = 16,
    MODEL_ALL_KEYS = 32,        /* all are */
    MODEL_COUNTED_KEYS = 64,    /* as many as the second says, from the third on */
    MODEL_SHARD_CHANNELS = 128, /* they are channels, which have slots as keys have */
    MODEL_MOVES_KEYS = 256,     /* MIGRATE: works on slots that move */
};

/* The keys among the arguments. */
struct model_keys {
    size_t first;
    size_t count;
};

/* Each ends with a row without a name. */
extern const struct model_command model_key_commands[];
extern const struct model_command model_hash_commands[];
extern const struct model_command model_set_commands[];
extern const struct model_command model_sorted_set_commands[];
extern const struct model_command model_list_commands[];
extern const struct model_command model_script_commands[];
extern const struct model_command model_server_commands[];
extern const struct model_command model_channel_commands[];
extern const struct model_command model_cluster_commands[];

/* Executes a command and writes its one reply. `session` NULL: from a script. */
void model_call_execute(struct redis_model *model, struct redis_session *session,
                        const struct slice *args, size_t count, struct buffer *out, int resp);

struct model_keys model_call_keys(const struct model_call *call,
                                  const struct model_command *command);

/* ---- keys ---- */

struct model_key {
    struct table_node node;
    struct slice name;
    struct model_value *value;
    int64_t expires_us; /* 0: never */
};

/* Returns NULL when there is no such key, or it has expired. */
struct model_key *model_key_find(struct redis_model *model, struct slice name);
struct model_key *model_key_make(struct redis_model *model, struct slice name,
                                 enum model_type type);
void model_key_remove(struct redis_model *model, struct model_key *key);

/* Returns the key's value if it has this type, NULL if there is no key; another type replies an error and clears *ok. */
struct model_value *model_call_read(struct model_call *call, size_t argument, enum model_type type,
                                    bool *ok);

/* The same, but makes the key. */
struct model_value *model_call_write(struct model_call *call, size_t argument, enum model_type type,
                                     bool *ok);

/* Removes a key whose value has become empty. */
void model_call_drop_if_empty(struct model_call *call, size_t argument);

/* What is the same for hashes, sets and sorted sets: removes the named members, counts the members. */
void model_call_remove_members(struct model_call *call, enum model_type type);
void model_call_count_members(struct model_call *call, enum model_type type);

/* ---- arguments ---- */

bool model_slice_is_word(struct slice text, const char *word); /* in any case */

/* Reply an error and return false when the argument is no such number. */
bool model_call_int(struct model_call *call, size_t argument, int64_t *out);
bool model_call_double(struct model_call *call, size_t argument, double *out);

/* "-inf", "5", "(5". */
bool model_parse_bound(struct slice text, double *bound, bool *exclusive);
bool model_parse_double(struct slice text, double *out);

/* ---- replies ---- */

void model_reply_error(struct model_call *call, const char *text);
void model_reply_status(struct model_call *call, const char *text);
void model_reply_int(struct model_call *call, int64_t value);
void model_reply_bulk(struct model_call *call, struct slice text);
void model_reply_number_text(struct model_call *call, int64_t value); /* as a bulk */
void model_reply_null(struct model_call *call);
void model_reply_array(struct model_call *call, size_t count);
void model_reply_null_array(struct model_call *call);
void model_reply_map(struct model_call *call, size_t pairs);
void model_reply_set(struct model_call *call, size_t count);
void model_reply_score(struct model_call *call, double score);
void model_reply_ok(struct model_call *call);

#define MODEL_WRONG_TYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
#define MODEL_SYNTAX "ERR syntax error"
#define MODEL_NOT_INTEGER "ERR value is not an integer or out of range"
#define MODEL_NOT_FLOAT "ERR value is not a valid float"

#endif
