#include "check/violations.h"

#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

/* Names come from users, so nothing in them may control a terminal or end the line. */
static void append_printable_text(struct buffer *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte < 0x20 || byte == 0x7f || byte == '\\')
            buffer_printf(out, "\\x%02x", byte);
        else
            buffer_append_byte(out, text.data[i]);
    }
}

/* Returns a text that the caller frees, or NULL when out of memory. */
static char *describe_violation(struct slice invariant, struct slice what)
{
    struct buffer text = BUFFER_INIT;
    size_t len;
    append_printable_text(&text, invariant);
    buffer_append_text(&text, ": ");
    append_printable_text(&text, slice_first(what, VIOLATION_TEXT_BYTES_MAX));
    buffer_append_byte(&text, '\0');
    if (text.failed) {
        buffer_free(&text);
        return NULL;
    }
    return buffer_detach(&text, &len);
}

void violations_add(struct violations *violations, struct slice key, struct slice invariant,
                    struct slice what)
{
    char *text = describe_violation(invariant, what);
    bool known = false;
    for (size_t i = 0; text && !known && i < violations->count; i++) {
        known = strcmp(violations->items[i].text, text) == 0;
        if (known)
            violations->items[i].seen = true;
    }
    if (text && (known || violations->confirming)) {
        free(text);
        return;
    }
    char *copy = text && violations->count < VIOLATIONS_MAX ? malloc(key.len) : NULL;
    if (!copy) {
        violations->more++;
        free(text);
        return;
    }
    memcpy(copy, key.data, key.len);
    violations->items[violations->count++] =
        (struct violation){.key = copy, .key_len = key.len, .text = text, .seen = true};
}

void violations_confirm(struct violations *violations)
{
    violations->confirming = true;
    for (size_t i = 0; i < violations->count; i++)
        violations->items[i].seen = false;
}

static void free_violation_texts(struct violation *violation)
{
    free(violation->key);
    free(violation->text);
}

void violations_drop_unseen(struct violations *violations)
{
    size_t kept = 0;
    for (size_t i = 0; i < violations->count; i++) {
        if (violations->items[i].seen)
            violations->items[kept++] = violations->items[i];
        else
            free_violation_texts(&violations->items[i]);
    }
    violations->count = kept;
}

void violations_print(const struct violations *violations, size_t limit, FILE *out)
{
    size_t shown = violations->count < limit ? violations->count : limit;
    size_t more = violations->count - shown + violations->more;
    for (size_t i = 0; i < shown; i++)
        fprintf(out, "%s\n", violations->items[i].text);
    if (more > 0)
        fprintf(out, "… and %zu more\n", more);
}

void violations_free(struct violations *violations)
{
    for (size_t i = 0; i < violations->count; i++)
        free_violation_texts(&violations->items[i]);
    violations->count = 0;
}
