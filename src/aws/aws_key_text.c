#include "aws/aws_key_text.h"

#include "text/json.h"
#include "text/time_text.h"

#include <stdio.h>

bool aws_is_header_text(struct slice text, size_t len_max)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return text.len > 0 && text.len <= len_max;
}

bool aws_key_text_is_usable(const struct aws_key_text *text)
{
    return aws_is_header_text(text->access_key_id, AWS_KEY_BYTES_MAX) &&
           aws_is_header_text(text->secret_access_key, AWS_KEY_BYTES_MAX) &&
           (!text->session_token.len ||
            aws_is_header_text(text->session_token, AWS_TOKEN_BYTES_MAX));
}

static bool read_key_end(struct slice time, struct aws_key_text *out)
{
    return time_text_parse(time, &out->ends_at_wall_ms) && out->ends_at_wall_ms > 0;
}

bool aws_key_text_read_json(char *data, size_t len, struct aws_key_text *out)
{
    struct json json;
    struct slice key;
    struct slice end = SLICE_NONE;
    struct slice code = SLICE("Success");
    *out = (struct aws_key_text){0};
    json_init(&json, data, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        struct slice *value = slice_is(key, "AccessKeyId")       ? &out->access_key_id
                              : slice_is(key, "SecretAccessKey") ? &out->secret_access_key
                              : slice_is(key, "Token")           ? &out->session_token
                              : slice_is(key, "Expiration")      ? &end
                              : slice_is(key, "Code")            ? &code
                                                                 : NULL;
        if (value && json_peek(&json) == JSON_STRING)
            json_string(&json, value);
        else
            json_skip(&json);
    }
    return json_done(&json) && slice_is(code, "Success") && (!end.len || read_key_end(end, out)) &&
           aws_key_text_is_usable(out);
}

struct slice aws_xml_element(struct slice xml, struct slice name)
{
    char open[64];
    char close[64];
    size_t open_len = (size_t)snprintf(open, sizeof(open), "<%.*s>", SLICE_FORMAT(name));
    size_t close_len = (size_t)snprintf(close, sizeof(close), "</%.*s>", SLICE_FORMAT(name));
    if (!xml.len || close_len >= sizeof(close))
        return SLICE_NONE;
    const char *at = memmem(xml.data, xml.len, open, open_len);
    if (!at)
        return SLICE_NONE;
    struct slice rest = slice_after(xml, (size_t)(at - xml.data) + open_len);
    const char *end = rest.len ? memmem(rest.data, rest.len, close, close_len) : NULL;
    return end ? (struct slice){rest.data, (size_t)(end - rest.data)} : SLICE_NONE;
}

/* Keys have no character that XML would escape, so one with '&' or '<' is malformed. */
static bool is_plain_xml(struct slice text)
{
    return !text.len || (!memchr(text.data, '&', text.len) && !memchr(text.data, '<', text.len));
}

bool aws_key_text_read_xml(struct slice xml, struct aws_key_text *out)
{
    struct slice credentials = aws_xml_element(xml, SLICE("Credentials"));
    *out = (struct aws_key_text){
        .access_key_id = aws_xml_element(credentials, SLICE("AccessKeyId")),
        .secret_access_key = aws_xml_element(credentials, SLICE("SecretAccessKey")),
        .session_token = aws_xml_element(credentials, SLICE("SessionToken")),
    };
    return is_plain_xml(out->access_key_id) && is_plain_xml(out->secret_access_key) &&
           is_plain_xml(out->session_token) && aws_key_text_is_usable(out) &&
           read_key_end(aws_xml_element(credentials, SLICE("Expiration")), out);
}
