#include "protocol/http1/http1.h"

#include "protocol/http1/http1_char.h"

#define VERSION_BYTES 8 /* "HTTP/1.1" */
#define REQUEST_LINE_BYTES_MAX (HTTP1_METHOD_BYTES_MAX + HTTP1_TARGET_BYTES_MAX + VERSION_BYTES + 4)
#define CONTENT_LENGTH_DIGITS_MAX 18 /* cannot overflow 64 bits */

static bool refuse(struct http1_head *head, unsigned status, const char *reason)
{
    head->error_status = status;
    head->error_reason = reason;
    return false;
}

static bool refuse_syntax(struct http1_head *head, const char *reason)
{
    return refuse(head, 400, reason);
}

/* Request line */

static enum http1_method method_of(struct slice text)
{
    static const struct slice names[HTTP1_OTHER_METHOD] = {
        [HTTP1_GET] = SLICE("GET"),         [HTTP1_HEAD] = SLICE("HEAD"),
        [HTTP1_POST] = SLICE("POST"),       [HTTP1_PUT] = SLICE("PUT"),
        [HTTP1_PATCH] = SLICE("PATCH"),     [HTTP1_DELETE] = SLICE("DELETE"),
        [HTTP1_OPTIONS] = SLICE("OPTIONS"),
    };
    enum http1_method method = HTTP1_GET;
    while (method < HTTP1_OTHER_METHOD && !slice_equal(text, names[method]))
        method++;
    return method;
}

static bool parse_method(struct http1_head *head, struct slice text)
{
    if (text.len == 0 || text.len > HTTP1_METHOD_BYTES_MAX ||
        !http1_char_all(text, HTTP1_CHAR_TOKEN))
        return refuse_syntax(head, "bad method");
    head->method_text = text;
    head->method = method_of(text);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_version(struct http1_head *head, struct slice text)
{
    if (text.len != VERSION_BYTES || memcmp(text.data, "HTTP/", 5) != 0 ||
        !is_digit(text.data[5]) || text.data[6] != '.' || !is_digit(text.data[7]))
        return refuse_syntax(head, "bad version");
    if (text.data[5] != '1' || text.data[7] > '1')
        return refuse(head, 505, "version not supported");
    head->version_minor = (unsigned)(text.data[7] - '0');
    return true;
}

static bool parse_request_line(struct http1_head *head, struct slice line)
{
    struct slice method;
    struct slice after_method = slice_split(line, ' ', &method);
    struct slice version = slice_split(after_method, ' ', &head->target_text);
    if (!parse_method(head, method))
        return false;
    if (head->target_text.len > HTTP1_TARGET_BYTES_MAX)
        return refuse(head, 414, "target too long");
    if (!parse_version(head, version))
        return false;
    if (!http1_target_parse(head->target_text, head->method == HTTP1_OPTIONS, &head->target) ||
        slice_equal(method, SLICE("CONNECT")))
        return refuse_syntax(head, "bad target");
    return true;
}

/* Header fields */

static bool parse_header_line(struct http1_head *head, struct slice line)
{
    struct http1_header header;
    struct slice value = slice_split(line, ':', &header.name);
    if (!value.data || header.name.len == 0 || !http1_char_all(header.name, HTTP1_CHAR_TOKEN))
        return refuse_syntax(head, "bad header name");
    header.value = http1_char_trim(value);
    if (!http1_char_all(header.value, HTTP1_CHAR_VALUE))
        return refuse_syntax(head, "bad header value");
    if (head->header_count == HTTP1_HEADERS_MAX)
        return refuse(head, 431, "too many headers");
    head->headers[head->header_count++] = header;
    return true;
}

bool http1_token_next(struct slice *list, struct slice *token)
{
    while (list->len > 0) {
        *list = slice_split(*list, ',', token);
        *token = http1_char_trim(*token);
        if (token->len > 0)
            return true;
    }
    return false;
}

static bool list_has_token(struct slice list, struct slice token)
{
    struct slice found;
    while (http1_token_next(&list, &found)) {
        if (http1_char_same_name(found, token))
            return true;
    }
    return false;
}

/* What the fields that steer the connection said; decided upon when all were seen. */
struct steering {
    unsigned host_count;
    bool transfer_encoding;
    bool connection_close;
    bool connection_keep_alive;
    bool connection_upgrade;
    bool upgrade_websocket;
};

static bool steer_host(struct http1_head *head, struct steering *steering, struct slice value)
{
    if (steering->host_count++ > 0 || !http1_host_valid(value))
        return refuse_syntax(head, "bad Host");
    if (!head->host.data)
        head->host = value;
    return true;
}

static bool steer_content_length(struct http1_head *head, struct steering *steering,
                                 struct slice value)
{
    (void)steering;
    if (head->has_content_length || value.len == 0 || value.len > CONTENT_LENGTH_DIGITS_MAX)
        return refuse_syntax(head, "bad Content-Length");
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.data[i]))
            return refuse_syntax(head, "bad Content-Length");
        head->content_length = head->content_length * 10 + (uint64_t)(value.data[i] - '0');
    }
    head->has_content_length = true;
    return true;
}

/* "chunked" and nothing else, not even the empty list elements that a recipient should ignore: some
 * do not, and would take the body for the next request. */
static bool steer_transfer_encoding(struct http1_head *head, struct steering *steering,
                                    struct slice value)
{
    struct slice coding;
    bool repeated = steering->transfer_encoding;
    steering->transfer_encoding = true;
    head->chunked = !repeated && http1_char_same_name(value, SLICE("chunked"));
    if (head->chunked)
        return true;
    if (!repeated && http1_token_next(&value, &coding) &&
        !http1_char_same_name(coding, SLICE("chunked")))
        return refuse(head, 501, "transfer coding not supported");
    return refuse_syntax(head, "bad Transfer-Encoding");
}

static bool steer_connection(struct http1_head *head, struct steering *steering, struct slice value)
{
    (void)head;
    struct slice option;
    while (http1_token_next(&value, &option)) {
        steering->connection_close |= http1_char_same_name(option, SLICE("close"));
        steering->connection_keep_alive |= http1_char_same_name(option, SLICE("keep-alive"));
        steering->connection_upgrade |= http1_char_same_name(option, SLICE("upgrade"));
    }
    return true;
}

static bool steer_upgrade(struct http1_head *head, struct steering *steering, struct slice value)
{
    (void)head;
    steering->upgrade_websocket |= list_has_token(value, SLICE("websocket"));
    return true;
}

static bool steer_expect(struct http1_head *head, struct steering *steering, struct slice value)
{
    (void)steering;
    head->expect_continue |= http1_char_same_name(value, SLICE("100-continue"));
    return true;
}

static bool steer(struct http1_head *head, struct steering *steering)
{
    static const struct {
        struct slice name;
        bool (*apply)(struct http1_head *head, struct steering *steering, struct slice value);
    } known[] = {
        {SLICE("Host"), steer_host},
        {SLICE("Content-Length"), steer_content_length},
        {SLICE("Transfer-Encoding"), steer_transfer_encoding},
        {SLICE("Connection"), steer_connection},
        {SLICE("Upgrade"), steer_upgrade},
        {SLICE("Expect"), steer_expect},
    };
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http1_header *header = &head->headers[i];
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (http1_char_same_name(header->name, known[k].name) &&
                !known[k].apply(head, steering, header->value))
                return false;
        }
    }
    return true;
}

static bool decide(struct http1_head *head)
{
    struct steering steering = {0};
    bool newer = head->version_minor >= 1;
    head->host = head->target.authority;
    if (!steer(head, &steering))
        return false;
    if (newer && steering.host_count == 0)
        return refuse_syntax(head, "no Host");
    if (head->chunked && (head->has_content_length || !newer))
        return refuse_syntax(head, "bad body framing");
    head->keep_alive = !steering.connection_close && (newer || steering.connection_keep_alive);
    head->expect_continue &= newer;
    head->upgrade_websocket = newer && steering.connection_upgrade && steering.upgrade_websocket;
    return true;
}

/* The head as a whole */

/* Takes the line that `input` begins with, which the scan has seen to end in CR LF. */
static struct slice take_line(struct slice *input)
{
    struct slice line;
    *input = slice_split(*input, '\n', &line);
    line.len--;
    return line;
}

static bool parse_head(struct http1_head *head, struct slice text)
{
    if (!parse_request_line(head, take_line(&text)))
        return false;
    for (;;) {
        struct slice line = take_line(&text);
        if (line.len == 0)
            return decide(head);
        if (!parse_header_line(head, line))
            return false;
    }
}

/* Looks at the lines that ended since the last call. True when the blank line was found: head->len.
 */
static bool scan(struct slice input, size_t *scanned, size_t start, struct http1_head *head)
{
    const char *lf;
    if (*scanned < start)
        *scanned = start;
    while ((lf = memchr(input.data + *scanned, '\n', input.len - *scanned))) {
        size_t at = (size_t)(lf - input.data);
        if (at == start || lf[-1] != '\r')
            return refuse_syntax(head, "bare LF");
        *scanned = at + 1;
        if (at >= start + 3 && lf[-2] == '\n') {
            head->len = at + 1;
            return true;
        }
    }
    *scanned = input.len;
    return false;
}

/* What can be said of an incomplete head: its request line once that is there, else its method. The
 * first `looked_at` bytes were there at the last call. */
static bool check_beginning(struct http1_head *head, struct slice text, size_t looked_at)
{
    const char *lf = text.len ? memchr(text.data, '\n', text.len) : NULL;
    if (lf) {
        bool new = (size_t)(lf - text.data) >= looked_at;
        return !new || parse_request_line(head, take_line(&text));
    }
    if (text.len > REQUEST_LINE_BYTES_MAX)
        return refuse(head, 414, "target too long");
    struct slice start = slice_first(text, HTTP1_METHOD_BYTES_MAX + 1);
    struct slice method;
    if (slice_split(start, ' ', &method).data)
        return parse_method(head, method);
    bool cut = method.len > HTTP1_METHOD_BYTES_MAX || !http1_char_all(method, HTTP1_CHAR_TOKEN);
    return cut ? refuse_syntax(head, "bad method") : true;
}

enum http1_result http1_parse(struct slice input, size_t *scanned, struct http1_head *head)
{
    /* RFC 9112, 2.2: one empty line before the request is to be ignored. */
    size_t start = slice_starts_with(input, SLICE("\r\n")) ? 2 : 0;
    size_t looked_at = *scanned > start ? *scanned - start : 0;
    memset(head, 0, offsetof(struct http1_head, headers));
    if (input.len == 0 || (input.len == 1 && input.data[0] == '\r'))
        return HTTP1_INCOMPLETE;
    struct slice allowed = slice_first(input, HTTP1_HEAD_BYTES_MAX);
    struct slice text = slice_after(allowed, start);
    if (scan(allowed, scanned, start, head))
        return parse_head(head, slice_first(text, head->len - start)) ? HTTP1_COMPLETE
                                                                      : HTTP1_REFUSED;
    if (head->error_status)
        return HTTP1_REFUSED;
    if (!check_beginning(head, text, looked_at))
        return HTTP1_REFUSED;
    if (input.len >= HTTP1_HEAD_BYTES_MAX) {
        refuse(head, 431, "head too long");
        return HTTP1_REFUSED;
    }
    return HTTP1_INCOMPLETE;
}

/* Lookup */

struct slice http1_header(const struct http1_head *head, struct slice name)
{
    for (size_t i = 0; i < head->header_count; i++) {
        if (http1_char_same_name(head->headers[i].name, name))
            return head->headers[i].value;
    }
    return SLICE_NONE;
}

size_t http1_header_count(const struct http1_head *head, struct slice name)
{
    size_t count = 0;
    for (size_t i = 0; i < head->header_count; i++)
        count += http1_char_same_name(head->headers[i].name, name);
    return count;
}

bool http1_header_has_token(const struct http1_head *head, struct slice name, struct slice token)
{
    for (size_t i = 0; i < head->header_count; i++) {
        if (http1_char_same_name(head->headers[i].name, name) &&
            list_has_token(head->headers[i].value, token))
            return true;
    }
    return false;
}

struct slice http1_header_token_starting(const struct http1_head *head, struct slice name,
                                         struct slice prefix)
{
    struct slice token;
    for (size_t i = 0; i < head->header_count; i++) {
        struct slice list = head->headers[i].value;
        if (!http1_char_same_name(head->headers[i].name, name))
            continue;
        while (http1_token_next(&list, &token))
            if (slice_starts_with(token, prefix))
                return token;
    }
    return SLICE_NONE;
}
