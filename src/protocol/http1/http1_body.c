#include "protocol/http1/http1_body.h"

#include "protocol/http1/http1_char.h"

enum state {
    FIXED,
    SIZE,
    SIZE_DIGITS,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_START,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    ENDED,
    FAILED,
};

static enum state body_fail(struct http1_body *body, unsigned status)
{
    body->error_status = (uint16_t)status;
    return FAILED;
}

void http1_body_start(struct http1_body *body, const struct http1_head *head, uint64_t bytes_max)
{
    *body = (struct http1_body){.bytes_left = bytes_max, .remaining = head->content_length};
    if (head->chunked)
        body->state = SIZE;
    else if (head->content_length > bytes_max)
        body->state = (uint8_t)body_fail(body, 413);
    else
        body->state = head->content_length > 0 ? FIXED : ENDED;
}

static enum state body_take_size_digit(struct http1_body *body, char c)
{
    int digit = http1_char_hex(c);
    if (digit < 0 || body->size_digits == HTTP1_BODY_SIZE_DIGITS_MAX)
        return body_fail(body, 400);
    body->size_digits++;
    body->remaining = body->remaining << 4 | (uint64_t)digit;
    return body->remaining > body->bytes_left ? body_fail(body, 413) : SIZE_DIGITS;
}

/* Discards a byte of an extension or a trailer; the state stays the same while bytes are of the class. */
static enum state body_discard(struct http1_body *body, char c, uint8_t class, enum state same)
{
    if (!http1_char_is(c, class))
        return body_fail(body, 400);
    if (++body->discarded_bytes > HTTP1_BODY_DISCARDED_BYTES_MAX)
        return body_fail(body, 413);
    return same;
}

/* Returns the state after one byte of framing. */
static enum state body_step_framing(struct http1_body *body, char c)
{
    switch ((enum state)body->state) {
    case SIZE:
        return body_take_size_digit(body, c);
    case SIZE_DIGITS:
        return c == '\r' ? SIZE_LF : c == ';' ? EXTENSION : body_take_size_digit(body, c);
    case EXTENSION:
        return c == '\r' ? SIZE_LF : body_discard(body, c, HTTP1_CHAR_VALUE, EXTENSION);
    case SIZE_LF:
        if (c != '\n')
            return body_fail(body, 400);
        body->size_digits = 0;
        body->bytes_left -= body->remaining;
        return body->remaining > 0 ? DATA : TRAILER_START;
    case DATA_CR:
        return c == '\r' ? DATA_LF : body_fail(body, 400);
    case DATA_LF:
        return c == '\n' ? SIZE : body_fail(body, 400);
    case TRAILER_START:
        return c == '\r' ? END_LF : body_discard(body, c, HTTP1_CHAR_TOKEN, TRAILER_NAME);
    case TRAILER_NAME:
        return c == ':' ? TRAILER_VALUE : body_discard(body, c, HTTP1_CHAR_TOKEN, TRAILER_NAME);
    case TRAILER_VALUE:
        return c == '\r' ? TRAILER_LF : body_discard(body, c, HTTP1_CHAR_VALUE, TRAILER_VALUE);
    case TRAILER_LF:
        return c == '\n' ? TRAILER_START : body_fail(body, 400);
    case END_LF:
        return c == '\n' ? ENDED : body_fail(body, 400);
    case FIXED:
    case DATA:
    case ENDED:
    case FAILED:
        break;
    }
    return (enum state)body->state;
}

enum http1_body_event http1_body_decode(struct http1_body *body, struct slice *input,
                                        struct slice *data)
{
    for (;;) {
        if (body->state == ENDED)
            return HTTP1_BODY_END;
        if (body->state == FAILED)
            return HTTP1_BODY_ERROR;
        if (input->len == 0)
            return HTTP1_BODY_NEED_MORE;
        if (body->state == FIXED || body->state == DATA) {
            size_t count = body->remaining < input->len ? (size_t)body->remaining : input->len;
            *data = slice_first(*input, count);
            *input = slice_after(*input, count);
            body->remaining -= count;
            if (body->remaining == 0)
                body->state = body->state == FIXED ? ENDED : DATA_CR;
            return HTTP1_BODY_DATA;
        }
        body->state = (uint8_t)body_step_framing(body, input->data[0]);
        input->data++;
        input->len--;
    }
}
