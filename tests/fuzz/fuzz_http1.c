/*
 * Compares the HTTP/1 head and body decoders with themselves on other splits of the input, and with
 * http-parser.
 *
 * Properties: any split gives the same head and the same body; a head that is refused early is also refused as
 * a whole; and whatever we accept, http-parser accepts with the same method, target, fields, framing and body.
 * This direction matters, because a request that two parsers read differently can be smuggled. Allowed
 * differences:
 *   - we refuse more: bare LF, folded lines, blanks before a colon, repeated Content-Length, ...;
 *   - we accept any token as a method, http-parser only those in its list;
 *   - http-parser misreads lists of Connection options ("clos, upgrade", "close,,upgrade"), so only fields
 *     with one option are compared;
 *   - in HTTP/1.0 "Connection: close" overrides "keep-alive" in our parser, but not in http-parser;
 *   - http-parser takes a longer name that begins with "Transfer-Encoding" for that field, and does not accept
 *     "chunked" followed by a blank: it then refuses the request;
 *   - it refuses a Content-Length followed by a tab, which is equivalent to a space (RFC 9110, 5.6.3);
 *   - we discard trailers unread, while http-parser may refuse one that names a framing field.
 *
 * Input: a byte of split seed, then a request and the bytes after it.
 */
#include "fuzz.h"
#include "protocol/http1/http1_body.h"

#include <http_parser.h>
#include <string.h>
#include <strings.h>

#define BODY_BYTES_MAX 65536
#define INPUT_BYTES_MAX 65536

struct body_log {
    enum http1_body_event event;
    char bytes[BODY_BYTES_MAX];
    size_t len;
    size_t consumed;
};

/* What http-parser read. A field's parts come in one piece, because it gets the whole input. */
struct oracle {
    struct slice target;
    struct http1_header headers[HTTP1_HEADERS_MAX + 1];
    size_t header_count;
    bool headers_complete;
    bool last_chunk;
    bool message_complete;
    uint64_t content_length;
    bool chunked;
    bool keep_alive;
    bool upgrade;
    char body[BODY_BYTES_MAX];
    size_t body_len;
};

static enum http1_result parse_in_pieces(struct slice text, uint32_t seed, struct http1_head *head)
{
    size_t scanned = 0;
    size_t len = 0;
    enum http1_result result = HTTP1_INCOMPLETE;
    while (result == HTTP1_INCOMPLETE && len < text.len) {
        len += fuzz_piece(&seed, text.len - len);
        result = http1_parse(slice_first(text, len), &scanned, head);
    }
    return result;
}

static void check_split_head(struct slice text, uint32_t seed, enum http1_result result,
                             const struct http1_head *head)
{
    static struct http1_head other;
    fuzz_require(parse_in_pieces(text, seed, &other) == result, "a split changes no verdict");
    if (result == HTTP1_COMPLETE) {
        fuzz_require(memcmp(head, &other, offsetof(struct http1_head, headers)) == 0 &&
                         memcmp(head->headers, other.headers,
                                head->header_count * sizeof *head->headers) == 0,
                     "a split changes no head");
    }
}

static void decode_body(const struct http1_head *head, struct slice input, uint32_t seed,
                        struct body_log *log)
{
    struct http1_body body;
    struct slice data;
    size_t start_len = input.len;
    http1_body_start(&body, head, BODY_BYTES_MAX);
    log->len = 0;
    do {
        size_t piece_len = seed ? fuzz_piece(&seed, input.len) : input.len;
        char *copy = fuzz_copy(input.data, piece_len);
        struct slice piece = {copy, piece_len};
        while ((log->event = http1_body_decode(&body, &piece, &data)) == HTTP1_BODY_DATA) {
            fuzz_require(data.len <= BODY_BYTES_MAX - log->len, "the body is bounded");
            memcpy(log->bytes + log->len, data.data, data.len);
            log->len += data.len;
        }
        free(copy);
        input = slice_after(input, piece_len - piece.len);
    } while (log->event == HTTP1_BODY_NEED_MORE && input.len > 0);
    log->consumed = start_len - input.len;
}

static int oracle_target(http_parser *parser, const char *at, size_t len)
{
    ((struct oracle *)parser->data)->target = (struct slice){at, len};
    return 0;
}

static int oracle_name(http_parser *parser, const char *at, size_t len)
{
    struct oracle *oracle = parser->data;
    if (!oracle->headers_complete && oracle->header_count < HTTP1_HEADERS_MAX + 1)
        oracle->headers[oracle->header_count++] = (struct http1_header){{at, len}, SLICE_NONE};
    return 0;
}

/* http-parser keeps the blanks after a value. */
static int oracle_value(http_parser *parser, const char *at, size_t len)
{
    struct oracle *oracle = parser->data;
    while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
        len--;
    if (!oracle->headers_complete)
        oracle->headers[oracle->header_count - 1].value = (struct slice){at, len};
    return 0;
}

static int oracle_headers_complete(http_parser *parser)
{
    struct oracle *oracle = parser->data;
    oracle->headers_complete = true;
    oracle->content_length = parser->content_length;
    oracle->chunked = parser->flags & F_CHUNKED;
    oracle->keep_alive = http_should_keep_alive(parser);
    oracle->upgrade = parser->upgrade;
    return 0;
}

static int oracle_body(http_parser *parser, const char *at, size_t len)
{
    struct oracle *oracle = parser->data;
    if (len > BODY_BYTES_MAX - oracle->body_len)
        return 1;
    memcpy(oracle->body + oracle->body_len, at, len);
    oracle->body_len += len;
    return 0;
}

static int oracle_chunk(http_parser *parser)
{
    struct oracle *oracle = parser->data;
    oracle->last_chunk = parser->content_length == 0;
    return 0;
}

static int oracle_complete(http_parser *parser)
{
    ((struct oracle *)parser->data)->message_complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

static void oracle_parse(http_parser *parser, struct oracle *oracle, struct slice text)
{
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = oracle_target;
    settings.on_header_field = oracle_name;
    settings.on_header_value = oracle_value;
    settings.on_headers_complete = oracle_headers_complete;
    settings.on_body = oracle_body;
    settings.on_chunk_header = oracle_chunk;
    settings.on_message_complete = oracle_complete;
    memset(oracle, 0, offsetof(struct oracle, body));
    oracle->body_len = 0;
    http_parser_init(parser, HTTP_REQUEST);
    parser->data = oracle;
    http_parser_execute(parser, &settings, text.data, text.len);
}

static bool option_is_known(struct slice option)
{
    static const char *const known[] = {"close", "keep-alive", "upgrade"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (option.len == strlen(known[i]) && strncasecmp(option.data, known[i], option.len) == 0)
            return true;
    }
    return false;
}

static bool is_named(const struct http1_header *header, const char *name)
{
    return header->name.len == strlen(name) &&
           strncasecmp(header->name.data, name, header->name.len) == 0;
}

static bool connection_is_plain(const struct http1_head *head)
{
    for (size_t i = 0; i < head->header_count; i++) {
        struct slice value = head->headers[i].value;
        if (!is_named(&head->headers[i], "Connection"))
            continue;
        if (!option_is_known(value) || value.data[value.len] != '\r')
            return false;
    }
    return true;
}

static void check_head(const struct http1_head *head, const http_parser *parser,
                       const struct oracle *oracle)
{
    fuzz_require(oracle->headers_complete, "http-parser accepts the head");
    fuzz_require(slice_is(head->method_text, http_method_str((enum http_method)parser->method)),
                 "same method");
    fuzz_require(slice_equal(head->target_text, oracle->target), "same target");
    fuzz_require(head->version_minor == parser->http_minor && parser->http_major == 1,
                 "same version");
    fuzz_require(head->header_count == oracle->header_count, "same number of fields");
    for (size_t i = 0; i < head->header_count; i++) {
        fuzz_require(slice_equal(head->headers[i].name, oracle->headers[i].name), "same name");
        fuzz_require(slice_equal(head->headers[i].value, oracle->headers[i].value), "same value");
    }
    fuzz_require(head->chunked == oracle->chunked, "same transfer coding");
    fuzz_require(head->has_content_length == (oracle->content_length != UINT64_MAX),
                 "content length present in both or neither");
    fuzz_require(!head->has_content_length || head->content_length == oracle->content_length,
                 "same content length");
    if (connection_is_plain(head)) {
        fuzz_require(!head->keep_alive || oracle->keep_alive, "kept alive by both");
        fuzz_require(!head->upgrade_websocket || oracle->upgrade, "upgraded by both");
    }
}

static void check_body(const struct body_log *log, const struct oracle *oracle)
{
    if (log->event != HTTP1_BODY_END)
        return;
    fuzz_require(oracle->message_complete || oracle->last_chunk, "http-parser accepts the body");
    fuzz_require(log->len == oracle->body_len && memcmp(log->bytes, oracle->body, log->len) == 0,
                 "same body");
}

static bool has_tab_behind(struct slice value)
{
    const char *at = value.data + value.len;
    while (*at == ' ')
        at++;
    return *at == '\t';
}

static bool length_is_refused(const struct http1_head *head, const http_parser *parser)
{
    if (HTTP_PARSER_ERRNO(parser) != HPE_INVALID_CONTENT_LENGTH)
        return false;
    for (size_t i = 0; i < head->header_count; i++)
        if (is_named(&head->headers[i], "Content-Length") && has_tab_behind(head->headers[i].value))
            return true;
    return false;
}

static bool allowed_to_differ(const struct http1_head *head, const http_parser *parser)
{
    static const struct slice misread = SLICE("Transfer-Encoding");
    if (head->method == HTTP1_OTHER_METHOD && HTTP_PARSER_ERRNO(parser) == HPE_INVALID_METHOD)
        return true;
    if (length_is_refused(head, parser))
        return true;
    for (size_t i = 0; i < head->header_count; i++) {
        struct slice name = head->headers[i].name;
        struct slice value = head->headers[i].value;
        if (name.len >= misread.len && strncasecmp(name.data, misread.data, misread.len) == 0 &&
            (name.len > misread.len || value.data[value.len] != '\r'))
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http1_head head;
    static struct body_log whole, pieces;
    static struct oracle oracle;
    http_parser parser;
    if (size < 1 || size > INPUT_BYTES_MAX)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    uint32_t seed = 1u + data[0];
    size_t scanned = 0;
    enum http1_result result = http1_parse(text, &scanned, &head);
    check_split_head(text, seed, result, &head);
    if (result != HTTP1_COMPLETE)
        return 0;

    struct slice rest = slice_after(text, head.len);
    decode_body(&head, rest, 0, &whole);
    decode_body(&head, rest, seed, &pieces);
    fuzz_require(whole.event == pieces.event && whole.len == pieces.len &&
                     memcmp(whole.bytes, pieces.bytes, whole.len) == 0 &&
                     (whole.event != HTTP1_BODY_END || whole.consumed == pieces.consumed),
                 "a split changes no body");

    oracle_parse(&parser, &oracle, text);
    if (allowed_to_differ(&head, &parser))
        return 0;
    check_head(&head, &parser, &oracle);
    check_body(&whole, &oracle);
    return 0;
}
