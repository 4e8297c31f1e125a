#include "redis_model/model_request.h"

#include <stdbool.h>
#include <stdlib.h>

enum read_result { READ_DONE, READ_INCOMPLETE, READ_WRONG };

/* Reads a mark and the number behind it, up to the end of the line. */
static enum read_result read_number(struct slice *left, char mark, size_t *number)
{
    size_t at = 1;
    *number = 0;
    if (left->len == 0)
        return READ_INCOMPLETE;
    if (left->data[0] != mark)
        return READ_WRONG;
    for (; at < left->len && left->data[at] >= '0' && left->data[at] <= '9'; at++)
        if ((*number = *number * 10 + (size_t)(left->data[at] - '0')) > INT32_MAX)
            return READ_WRONG;
    if (at + 2 > left->len)
        return READ_INCOMPLETE;
    if (at == 1 || left->data[at] != '\r' || left->data[at + 1] != '\n')
        return READ_WRONG;
    *left = slice_after(*left, at + 2);
    return READ_DONE;
}

static enum read_result read_argument(struct slice *left, struct slice *argument)
{
    size_t len;
    enum read_result result = read_number(left, '$', &len);
    if (result != READ_DONE)
        return result;
    if (left->len < len + 2)
        return READ_INCOMPLETE;
    *argument = (struct slice){left->data, len};
    *left = slice_after(*left, len + 2);
    return READ_DONE;
}

static void reserve_arguments(struct model_request *request, size_t count)
{
    if (count <= request->capacity)
        return;
    request->capacity = 2 * count;
    request->args = realloc(request->args, request->capacity * sizeof(request->args[0]));
    if (!request->args)
        abort();
}

size_t model_request_read(struct model_request *request, struct slice bytes)
{
    struct slice left = bytes;
    size_t count;
    enum read_result result = read_number(&left, '*', &count);
    if (result == READ_DONE && (count == 0 || count > MODEL_ARGUMENTS_MAX))
        result = READ_WRONG;
    if (result == READ_DONE)
        reserve_arguments(request, count);
    for (request->count = 0; result == READ_DONE && request->count < count; request->count++)
        result = read_argument(&left, &request->args[request->count]);
    if (result == READ_INCOMPLETE)
        return 0;
    return result == READ_WRONG ? SIZE_MAX : bytes.len - left.len;
}

void model_request_free(struct model_request *request)
{
    free(request->args);
    *request = (struct model_request){0};
}
