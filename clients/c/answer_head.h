/*
 * The head of the server's answer to an HTTP request. Internal. `head` is everything up to the blank line, with the
 * line end before it. Pure functions; the slices they return point into the head.
 */
#ifndef ROLLCALL_CLIENTS_C_ANSWER_HEAD_H
#define ROLLCALL_CLIENTS_C_ANSWER_HEAD_H

#include "base/slice.h"

/* Finds the head at the start of the input. Returns an empty slice while it is incomplete; the body begins two
 * bytes after the head. */
struct slice answer_head_find(struct slice input);

/* Returns the status, or 0 if this is no answer of HTTP/1.1. */
unsigned answer_head_status(struct slice head);

/* Returns the value of a header, or an empty slice. */
struct slice answer_head_value(struct slice head, const char *name);

/* Returns the number at the start of a text, or 0; at most 9 digits are read. */
unsigned answer_head_number(struct slice text);

#endif
