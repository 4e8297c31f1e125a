#include "aws/aws_key_set.h"

#include <openssl/crypto.h>
#include <stdlib.h>

static const char *copy_key_text(char **at, struct slice text)
{
    struct slice copy = slice_copy_to(at, text);
    *(*at)++ = '\0';
    return copy.data;
}

struct aws_key_set *aws_key_set_make(const struct aws_key_text *text)
{
    size_t len =
        text->access_key_id.len + text->secret_access_key.len + text->session_token.len + 3;
    struct aws_key_set *set = calloc(1, sizeof(*set) + len);
    if (!set)
        return NULL;
    char *at = set->text;
    set->text_len = len;
    set->ends_at_wall_ms = text->ends_at_wall_ms;
    set->keys.access_key_id = copy_key_text(&at, text->access_key_id);
    set->keys.secret_access_key = copy_key_text(&at, text->secret_access_key);
    if (text->session_token.len)
        set->keys.session_token = copy_key_text(&at, text->session_token);
    return set;
}

void aws_key_set_free(struct aws_key_set **set)
{
    struct aws_key_set *freed = *set;
    *set = NULL;
    if (!freed)
        return;
    OPENSSL_cleanse(freed->text, freed->text_len);
    free(freed);
}
