/* A set of keys in memory of its own, which is overwritten before it is freed. */
#ifndef ROLLCALL_AWS_AWS_KEY_SET_H
#define ROLLCALL_AWS_AWS_KEY_SET_H

#include "aws/aws_credentials.h"
#include "aws/aws_key_text.h"

struct aws_key_set {
    struct aws_keys keys;    /* point into `text` */
    int64_t ends_at_wall_ms; /* 0: never */
    size_t text_len;
    char text[];
};

/* Copies. Returns NULL when out of memory. */
struct aws_key_set *aws_key_set_make(const struct aws_key_text *text);

void aws_key_set_free(struct aws_key_set **set);

#endif
