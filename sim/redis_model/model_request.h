/*
 * The commands that a client sends, as the bytes come in: "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n". Without allocation for each of
 * them, as commands come by the ten thousands a second.
 */
#ifndef ROLLCALL_SIM_REDIS_MODEL_REQUEST_H
#define ROLLCALL_SIM_REDIS_MODEL_REQUEST_H

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum { MODEL_ARGUMENTS_MAX = 1024 * 1024 };

/* The one that was read last. `args` point into the bytes and belong to the request. */
struct model_request {
    struct slice *args;
    size_t count;
    size_t capacity;
};

/* Reads the command at the front of the bytes. Returns how many it took; 0: it is incomplete; SIZE_MAX: it is none. */
size_t model_request_read(struct model_request *request, struct slice bytes);
void model_request_free(struct model_request *request);

#endif
