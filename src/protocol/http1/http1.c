#include "protocol/http1/http1.h"

#include "protocol/http1/http1_char.h"

#define VERSION_BYTES 8 /* "HTTP/1.1" */
#define REQUEST_LINE_BYTES_MAX (HTTP1_METHOD_BYTES_MAX + HTTP1_TARGET_BYTES_MAX + VERSION_BYTES + 4)
#define CONTENT_LENGTH_DIGITS_MAX 18 /* cannot overflow 64 bits */

static bool http1_refuse(struct http1_head *head, unsigned status, const char *reason)
{
    head->error_status = status;
    head->error_reason = reason;
    return false;
}

static bool http1_refuse_syntax(struct http1_head *head, const char *reason)
{
    return http1_refuse(head, 400, reason);
}

/* ---- request line ---- */

static bool http1_parse_method(struct http1_head *head, struct slice text)
{
    static const struct slice names[HTTP1_OTHER_METHOD] = {
        [HTTP1_GET] = SLICE("GET"),         [HTTP1_HEAD] = SLICE("HEAD"),
        [HTTP1_POST] = SLICE("POST"),       [HTTP1_PUT] = SLICE("PUT"),
        [HTTP1_PATCH] = SLICE("PATCH"),     [HTTP1_DELETE] = SLICE("DELETE"),
        [HTTP1_OPTIONS] = SLICE("OPTIONS"),
    };
    if (text.len == 0 || text.len > HTTP1_METHOD_BYTES_MAX ||
        !http1_char_all(text, HTTP1_CHAR_TOKEN))
        return http1_refuse_syntax(head, "bad method");
    head->method_text = text;
    head->method = HTTP1_GET;
    while (head->method < HTTP1_OTHER_METHOD && !slice_equal(text, names[head->method]))
        head->method++;
    return true;
}

static bool is_http1_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool http1_parse_version(struct http1_head *head, struct slice text)
{
    if (text.len != VERSION_BYTES || memcmp(text.data, "HTTP/", 5) != 0 ||
        !is_http1_digit(text.data[5]) || text.data[6] != '.' || !is_http1_digit(text.data[7]))
        return http1_refuse_syntax(head, "bad version");
    if (text.data[5] != '1' || text.data[7] > '1')
        return http1_refuse(head, 505, "version not supported");
    head->version_minor = (unsigned)(text.data[7] - '0');
    return true;
}

static bool http1_parse_request_line(struct http1_head *head, struct slice line)
{
    struct slice method;
    struct slice after_method = slice_split(line, ' ', &method);
    struct slice version = slice_split(after_method, ' ', &head->target_text);
    if (!http1_parse_method(head, method))
        return false;
    if (head->target_text.len > HTTP1_TARGET_BYTES_MAX)
        return http1_refuse(head, 414, "target too long");
    if (!http1_parse_version(head, version))
        return false;
    if (!http1_target_parse(head->target_text, head->method == HTTP1_OPTIONS, &head->target) ||
        slice_equal(method, SLICE("CONNECT")))
        return http1_refuse_syntax(head, "bad target");
    return true;
}

/* ---- header fields ---- */

static bool http1_parse_header_line(struct http1_head *head, struct slice line)
{
    struct http1_header header;
    struct slice value = slice_split(line, ':', &header.name);
    if (!value.data || header.name.len == 0 || !http1_char_all(header.name, HTTP1_CHAR_TOKEN))
        return http1_refuse_syntax(head, "bad header name");
    header.value = http1_char_trim(value);
    if (!http1_char_all(header.value, HTTP1_CHAR_VALUE))
        return http1_refuse_syntax(head, "bad header value");
    if (head->header_count == HTTP1_HEADERS_MAX)
        return http1_refuse(head, 431, "too many headers");
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

static bool http1_token_list_has(struct slice list, struct slice token)
{
    struct slice found;
    while (http1_token_next(&list, &found)) {
        if (http1_char_same_name(found, token))
            return true;
    }
    return false;
}

/* The values of the fields that control the connection; evaluated after the last field. */
struct control_fields {
    unsigned host_count;
    bool transfer_encoding;
    bool connection_close;
    bool connection_keep_alive;
    bool connection_upgrade;
    bool upgrade_websocket;
};

static bool http1_apply_host(struct http1_head *head, struct control_fields *control,
                             struct slice value)
{
    if (control->host_count++ > 0 || !http1_host_valid(value))
        return http1_refuse_syntax(head, "bad Host");
    if (!head->host.data)
        head->host = value;
    return true;
}

static bool http1_apply_content_length(struct http1_head *head, struct control_fields *control,
                                       struct slice value)
{
    (void)control;
    if (head->has_content_length || value.len == 0 || value.len > CONTENT_LENGTH_DIGITS_MAX)
        return http1_refuse_syntax(head, "bad Content-Length");
    for (size_t i = 0; i < value.len; i++) {
        if (!is_http1_digit(value.data[i]))
            return http1_refuse_syntax(head, "bad Content-Length");
        head->content_length = head->content_length * 10 + (uint64_t)(value.data[i] - '0');
    }
    head->has_content_length = true;
    return true;
}

/* Accepts "chunked" only, without the empty list elements that a recipient should ignore: some recipients do
 * not, and would take the body for the next request. */
static bool http1_apply_transfer_encoding(struct http1_head *head, struct control_fields *control,
                                          struct slice value)
{
    struct slice coding;
    bool repeated = control->transfer_encoding;
    control->transfer_encoding = true;
    head->chunked = !repeated && http1_char_same_name(value, SLICE("chunked"));
    if (head->chunked)
        return true;
    if (!repeated && http1_token_next(&value, &coding) &&
        !http1_char_same_name(coding, SLICE("chunked")))
        return http1_refuse(head, 501, "transfer coding not supported");
    return http1_refuse_syntax(head, "bad Transfer-Encoding");
}

static bool http1_apply_connection(struct http1_head *head, struct control_fields *control,
                                   struct slice value)
{
    (void)head;
    struct slice option;
    while (http1_token_next(&value, &option)) {
        control->connection_close |= http1_char_same_name(option, SLICE("close"));
        control->connection_keep_alive |= http1_char_same_name(option, SLICE("keep-alive"));
        control->connection_upgrade |= http1_char_same_name(option, SLICE("upgrade"));
    }
    return true;
}

static bool http1_apply_upgrade(struct http1_head *head, struct control_fields *control,
                                struct slice value)
{
    (void)head;
    control->upgrade_websocket |= http1_token_list_has(value, SLICE("websocket"));
    return true;
}

static bool http1_apply_expect(struct http1_head *head, struct control_fields *control,
                               struct slice value)
{
    (void)control;
    head->expect_continue |= http1_char_same_name(value, SLICE("100-continue"));
    return true;
}

static bool http1_apply_control_fields(struct http1_head *head, struct control_fields *control)
{
    static const struct {
        struct slice name;
        bool (*apply)(struct http1_head *head, struct control_fields *control, struct slice value);
    } known[] = {
        {SLICE("Host"), http1_apply_host},
        {SLICE("Content-Length"), http1_apply_content_length},
        {SLICE("Transfer-Encoding"), http1_apply_transfer_encoding},
        {SLICE("Connection"), http1_apply_connection},
        {SLICE("Upgrade"), http1_apply_upgrade},
        {SLICE("Expect"), http1_apply_expect},
    };
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http1_header *header = &head->headers[i];
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (http1_char_same_name(header->name, known[k].name) &&
                !known[k].apply(head, control, header->value))
                return false;
        }
    }
    return true;
}

static bool http1_decide_framing(struct http1_head *head)
{
    struct control_fields control = {0};
    bool newer = head->version_minor >= 1;
    head->host = head->target.authority;
    if (!http1_apply_control_fields(head, &control))
        return false;
    if (newer && control.host_count == 0)
        return http1_refuse_syntax(head, "no Host");
    if (head->chunked && (head->has_content_length || !newer))
        return http1_refuse_syntax(head, "bad body framing");
    head->keep_alive = !control.connection_close && (newer || control.connection_keep_alive);
    head->expect_continue &= newer;
    head->upgrade_websocket = newer && control.connection_upgrade && control.upgrade_websocket;
    return true;
}

/* ---- the head as a whole ---- */

/* Takes the first line of `input`, of which the scan has verified that it ends in CR LF. */
static struct slice http1_take_line(struct slice *input)
{
    struct slice line;
    *input = slice_split(*input, '\n', &line);
    line.len--;
    return line;
}

static bool http1_parse_head(struct http1_head *head, struct slice text)
{
    if (!http1_parse_request_line(head, http1_take_line(&text)))
        return false;
    for (;;) {
        struct slice line = http1_take_line(&text);
        if (line.len == 0)
            return http1_decide_framing(head);
        if (!http1_parse_header_line(head, line))
            return false;
    }
}

/* Scans the lines that ended since the last scan. Returns true when it found the blank line, and sets
 * head->len. */
static bool http1_scan_lines(struct slice input, size_t *scanned, size_t start,
                             struct http1_head *head)
{
    const char *lf;
    if (*scanned < start)
        *scanned = start;
    while ((lf = memchr(input.data + *scanned, '\n', input.len - *scanned))) {
        size_t at = (size_t)(lf - input.data);
        if (at == start || lf[-1] != '\r')
            return http1_refuse_syntax(head, "bare LF");
        *scanned = at + 1;
        if (at >= start + 3 && lf[-2] == '\n') {
            head->len = at + 1;
            return true;
        }
    }
    *scanned = input.len;
    return false;
}

/* Checks an incomplete head: its request line if that is complete, else its method. The first
 * `checked_bytes` bytes were checked before. */
static bool http1_check_beginning(struct http1_head *head, struct slice text, size_t checked_bytes)
{
    const char *lf = text.len ? memchr(text.data, '\n', text.len) : NULL;
    if (lf) {
        bool new = (size_t)(lf - text.data) >= checked_bytes;
        return !new || http1_parse_request_line(head, http1_take_line(&text));
    }
    if (text.len > REQUEST_LINE_BYTES_MAX)
        return http1_refuse(head, 414, "target too long");
    struct slice start = slice_first(text, HTTP1_METHOD_BYTES_MAX + 1);
    struct slice method;
    if (slice_split(start, ' ', &method).data)
        return http1_parse_method(head, method);
    bool cut = method.len > HTTP1_METHOD_BYTES_MAX || !http1_char_all(method, HTTP1_CHAR_TOKEN);
    return cut ? http1_refuse_syntax(head, "bad method") : true;
}

enum http1_result http1_parse(struct slice input, size_t *scanned, struct http1_head *head)
{
    /* RFC 9112, 2.2: ignore one empty line before the request. */
    size_t start = slice_starts_with(input, SLICE("\r\n")) ? 2 : 0;
    size_t checked_bytes = *scanned > start ? *scanned - start : 0;
    memset(head, 0, offsetof(struct http1_head, headers));
    if (input.len == 0 || (input.len == 1 && input.data[0] == '\r'))
        return HTTP1_INCOMPLETE;
    struct slice allowed = slice_first(input, HTTP1_HEAD_BYTES_MAX);
    struct slice text = slice_after(allowed, start);
    if (http1_scan_lines(allowed, scanned, start, head))
        return http1_parse_head(head, slice_first(text, head->len - start)) ? HTTP1_COMPLETE
                                                                            : HTTP1_REFUSED;
    if (head->error_status)
        return HTTP1_REFUSED;
    if (!http1_check_beginning(head, text, checked_bytes))
        return HTTP1_REFUSED;
    if (input.len >= HTTP1_HEAD_BYTES_MAX) {
        http1_refuse(head, 431, "head too long");
        return HTTP1_REFUSED;
    }
    return HTTP1_INCOMPLETE;
}

/* ---- lookup ---- */

struct slice http1_header(const struct http1_head *head, struct slice name)
{
    for (size_t i = 0; i < head->header_count; i++) {
        if (http1_char_same_name(head->headers[i].name, name))
            return head->headers[i].value;
    }
    return SLICE_NONE;
}

struct slice http1_header_last(const struct http1_head *head, struct slice name)
{
    for (size_t i = head->header_count; i > 0; i--) {
        if (http1_char_same_name(head->headers[i - 1].name, name))
            return head->headers[i - 1].value;
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
            http1_token_list_has(head->headers[i].value, token))
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
