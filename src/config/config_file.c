#include "config/config_file.h"

#include "config/config_assign.h"

#include <assert.h>
#include <errno.h>
#include <yaml.h>

enum {
    NAME_MAX_BYTES = 128,               /* of a full, dotted name */
    KEYS_MAX = 2 * CONFIG_SETTINGS_MAX, /* every setting and every section once */
};

struct config_file_key {
    char name[NAME_MAX_BYTES];
    unsigned line;
};

/* Reads one file. libyaml returns one event at a time; `event` is the current one. */
struct config_file_reader {
    yaml_parser_t parser;
    yaml_event_t event;
    struct config *config;
    struct config_error *error;
    const char *path;
    char name[NAME_MAX_BYTES]; /* of the key being read, with its sections */
    size_t name_len;
    struct config_file_key keys[KEYS_MAX]; /* read so far */
    size_t key_count;
};

static struct config_place config_file_place_at(const struct config_file_reader *reader,
                                                size_t line_from_0)
{
    return (struct config_place){
        .source = CONFIG_FROM_FILE, .label = reader->path, .line = (unsigned)line_from_0 + 1};
}

static struct config_place config_file_place(const struct config_file_reader *reader)
{
    return config_file_place_at(reader, reader->event.start_mark.line);
}

static bool has_unsupported_yaml(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor || event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor || event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor || event->data.mapping_start.tag;
    default:
        return false;
    }
}

/* Reads the next event. Returns false on a syntax error or on unsupported YAML. */
static bool next_yaml_event(struct config_file_reader *reader)
{
    yaml_event_delete(&reader->event);
    if (!yaml_parser_parse(&reader->parser, &reader->event)) {
        struct config_place place = config_file_place_at(reader, reader->parser.problem_mark.line);
        const char *problem = reader->parser.problem;
        return config_fail(reader->error, &place, "not valid YAML: %s",
                           problem ? problem : "cannot be read");
    }
    if (!has_unsupported_yaml(&reader->event))
        return true;
    struct config_place place = config_file_place(reader);
    return config_fail(reader->error, &place, "anchors, aliases and tags are not supported");
}

static struct slice yaml_scalar_text(const yaml_event_t *event)
{
    return (struct slice){(const char *)event->data.scalar.value, event->data.scalar.length};
}

static bool is_yaml_null(const yaml_event_t *event)
{
    struct slice text = yaml_scalar_text(event);
    return event->type == YAML_SCALAR_EVENT &&
           event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text.len == 0 || slice_is(text, "~") || slice_is(text, "null"));
}

static struct slice config_file_name(const struct config_file_reader *reader)
{
    return (struct slice){reader->name, reader->name_len};
}

/* Appends a key to the current name. A key too long for any setting is cut, so it is unknown. */
static void enter_config_key(struct config_file_reader *reader, struct slice key)
{
    if (reader->name_len > 0)
        reader->name[reader->name_len++] = '.';
    size_t space = sizeof(reader->name) - 2 - reader->name_len;
    struct slice kept = slice_first(key, space);
    memcpy(reader->name + reader->name_len, kept.data, kept.len);
    reader->name_len += kept.len;
    reader->name[reader->name_len] = '\0';
}

/* Records a key of a known name; fails if it was given before. */
static bool note_config_key(struct config_file_reader *reader, const struct config_place *place)
{
    for (size_t i = 0; i < reader->key_count; i++)
        if (slice_is(config_file_name(reader), reader->keys[i].name))
            return config_fail(reader->error, place, "%s was given on line %u already",
                               reader->name, reader->keys[i].line);
    assert(reader->key_count < KEYS_MAX);
    struct config_file_key *key = &reader->keys[reader->key_count++];
    memcpy(key->name, reader->name, reader->name_len + 1);
    key->line = place->line;
    return true;
}

/* Appends a list of names, or one, as "a+b". */
static bool read_item_names(struct config_file_reader *reader, struct buffer *item)
{
    bool is_list = reader->event.type == YAML_SEQUENCE_START_EVENT;
    for (bool first = true; !is_list || next_yaml_event(reader); first = false) {
        if (is_list && reader->event.type == YAML_SEQUENCE_END_EVENT)
            return true;
        struct config_place place = config_file_place(reader);
        if (reader->event.type != YAML_SCALAR_EVENT)
            return config_fail(reader->error, &place, "types must be a list of texts");
        if (!first)
            buffer_append_byte(item, '+');
        buffer_append_slice(item, yaml_scalar_text(&reader->event));
        if (!is_list)
            return true;
    }
    return false;
}

static bool read_item_text(struct config_file_reader *reader, const char *key, struct buffer *item)
{
    struct config_place place = config_file_place(reader);
    if (reader->event.type != YAML_SCALAR_EVENT || is_yaml_null(&reader->event))
        return config_fail(reader->error, &place, "%s must be a text", key);
    buffer_append_slice(item, yaml_scalar_text(&reader->event));
    return true;
}

/* The parts of an item that is a mapping. */
struct config_file_item {
    struct buffer url;
    struct buffer types;
    struct buffer secret_file;
};

static bool read_item_parts(struct config_file_reader *reader, const struct setting *setting,
                            struct config_file_item *item)
{
    while (next_yaml_event(reader) && reader->event.type != YAML_MAPPING_END_EVENT) {
        struct config_place place = config_file_place(reader);
        char key[NAME_MAX_BYTES];
        if (reader->event.type != YAML_SCALAR_EVENT)
            return config_fail(reader->error, &place, "expected the name of a setting");
        struct slice name = slice_first(yaml_scalar_text(&reader->event), sizeof(key) - 1);
        memcpy(key, name.data, name.len);
        key[name.len] = '\0';
        bool is_types = strcmp(key, "types") == 0;
        struct buffer *part = strcmp(key, "url") == 0           ? &item->url
                              : strcmp(key, "secret_file") == 0 ? &item->secret_file
                              : is_types                        ? &item->types
                                                                : NULL;
        if (!part || part->len)
            return config_fail(reader->error, &place,
                               "an item of %s has url, secret_file and types, each once; found %s",
                               setting->name, key);
        if (!next_yaml_event(reader) ||
            !(is_types ? read_item_names(reader, part) : read_item_text(reader, key, part)))
            return false;
    }
    return reader->event.type == YAML_MAPPING_END_EVENT;
}

/* Stores a mapping as one text: "URL types=a+b secret_file=PATH". */
static bool read_config_item_mapping(struct config_file_reader *reader,
                                     const struct setting *setting)
{
    struct config_place place = config_file_place(reader);
    struct config_file_item item = {.url = BUFFER_INIT};
    bool read = read_item_parts(reader, setting, &item);
    if (item.types.len)
        buffer_printf(&item.url, " types=%.*s", (int)item.types.len, item.types.data);
    if (item.secret_file.len)
        buffer_printf(&item.url, " secret_file=%.*s", (int)item.secret_file.len,
                      item.secret_file.data);
    read = read && config_assign_item(reader->config, &place, setting, buffer_slice(&item.url),
                                      reader->error);
    buffer_free(&item.url);
    buffer_free(&item.types);
    buffer_free(&item.secret_file);
    return read;
}

static bool read_config_list(struct config_file_reader *reader, const struct setting *setting)
{
    struct config_place place = config_file_place(reader);
    config_assign_empty_list(reader->config, &place, setting);
    while (next_yaml_event(reader)) {
        if (reader->event.type == YAML_SEQUENCE_END_EVENT)
            return true;
        place = config_file_place(reader);
        if (reader->event.type == YAML_MAPPING_START_EVENT && setting->mappings) {
            if (!read_config_item_mapping(reader, setting))
                return false;
            continue;
        }
        if (reader->event.type != YAML_SCALAR_EVENT)
            return config_fail(reader->error, &place, "an item of %s must be a text",
                               setting->name);
        if (!config_assign_item(reader->config, &place, setting, yaml_scalar_text(&reader->event),
                                reader->error))
            return false;
    }
    return false;
}

static bool read_config_setting(struct config_file_reader *reader, const struct setting *setting)
{
    struct config_place place = config_file_place(reader);
    if (is_yaml_null(&reader->event))
        return config_fail(reader->error, &place, "%s has no value", setting->name);
    if (reader->event.type == YAML_SEQUENCE_START_EVENT && setting->type == SETTING_LIST)
        return read_config_list(reader, setting);
    if (reader->event.type == YAML_SCALAR_EVENT)
        return config_assign(reader->config, &place, setting, yaml_scalar_text(&reader->event),
                             reader->error);
    const char *found = reader->event.type == YAML_MAPPING_START_EVENT ? "a mapping" : "a list";
    return config_fail_found(reader->error, &place, setting, found);
}

static bool read_config_mapping(struct config_file_reader *reader);

/* Reads the value of the key just entered: a setting or a section. */
static bool read_config_value(struct config_file_reader *reader,
                              const struct config_place *key_place)
{
    const struct setting *setting = setting_find(config_file_name(reader));
    if (!setting && !setting_is_section(config_file_name(reader)))
        return config_fail_unknown(reader->error, key_place, config_file_name(reader));
    if (!note_config_key(reader, key_place) || !next_yaml_event(reader))
        return false;
    if (setting)
        return read_config_setting(reader, setting);
    if (reader->event.type == YAML_MAPPING_START_EVENT)
        return read_config_mapping(reader);
    if (is_yaml_null(&reader->event))
        return true;
    struct config_place place = config_file_place(reader);
    return config_fail(reader->error, &place, "%s is a section; expected settings below it",
                       reader->name);
}

/* Reads up to the end of the mapping that starts at the current event. The recursion is bounded,
 * since there is no section below a setting. */
static bool read_config_mapping(struct config_file_reader *reader)
{
    size_t outer_len = reader->name_len;
    while (next_yaml_event(reader)) {
        if (reader->event.type == YAML_MAPPING_END_EVENT)
            return true;
        struct config_place place = config_file_place(reader);
        if (reader->event.type != YAML_SCALAR_EVENT)
            return config_fail(reader->error, &place, "expected the name of a setting");
        enter_config_key(reader, yaml_scalar_text(&reader->event));
        if (!read_config_value(reader, &place))
            return false;
        reader->name_len = outer_len;
        reader->name[outer_len] = '\0';
    }
    return false;
}

/* Skips one event, which carries no information, and reads the one after it. */
static bool skip_yaml_event(struct config_file_reader *reader)
{
    bool skipped = next_yaml_event(reader);
    return skipped && next_yaml_event(reader);
}

/* Reads a stream, which is empty or one document; a document is empty or one mapping. */
static bool read_yaml_stream(struct config_file_reader *reader)
{
    if (!skip_yaml_event(reader))
        return false;
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return true;
    if (!next_yaml_event(reader))
        return false;
    if (reader->event.type == YAML_MAPPING_START_EVENT) {
        if (!read_config_mapping(reader))
            return false;
    } else if (!is_yaml_null(&reader->event)) {
        struct config_place place = config_file_place(reader);
        return config_fail(reader->error, &place, "expected a mapping of settings");
    }
    if (!skip_yaml_event(reader))
        return false;
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return true;
    struct config_place place = config_file_place(reader);
    return config_fail(reader->error, &place, "a second document is not supported");
}

static bool read_config_text(struct config *config, const char *path, struct slice text,
                             struct config_error *error)
{
    struct config_file_reader reader = {.config = config, .error = error, .path = path};
    struct config_place place = {.source = CONFIG_FROM_FILE, .label = path};
    if (!yaml_parser_initialize(&reader.parser))
        return config_fail(error, &place, "out of memory");
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text.data, text.len);
    bool is_read = read_yaml_stream(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return is_read;
}

bool config_file_read(struct config *config, const char *path, struct config_error *error)
{
    struct config_place place = {.source = CONFIG_FROM_FILE, .label = path};
    struct buffer text = BUFFER_INIT;
    bool is_read = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return config_fail(error, &place, "cannot be opened: %s", strerror(errno));
    if (!buffer_reserve(&text, CONFIG_FILE_BYTES_MAX + 1))
        config_fail(error, &place, "out of memory");
    else if ((text.len = fread(text.data, 1, CONFIG_FILE_BYTES_MAX + 1, file)) == 0 && ferror(file))
        config_fail(error, &place, "cannot be read: %s", strerror(errno));
    else if (text.len > CONFIG_FILE_BYTES_MAX)
        config_fail(error, &place, "is larger than %d bytes", CONFIG_FILE_BYTES_MAX);
    else
        is_read = read_config_text(config, path, buffer_slice(&text), error);
    fclose(file);
    buffer_free(&text);
    return is_read;
}
