#include "socketio/codec/engineio.h"

#include "text/json.h"

#include <openssl/evp.h>

#define BASE64_MARK "b"

enum { BASE64_GROUP = 4, BASE64_GROUP_BYTES = 3 };

/* Removes line breaks and padding in place, which some clients send and others do not. Returns the length left. */
static size_t engineio_compact_base64(char *text, size_t len)
{
    size_t kept = 0, padding = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '\n' && text[i] != '\r')
            text[kept++] = text[i];
    while (padding < 2 && padding < kept && text[kept - 1 - padding] == '=')
        padding++;
    return kept - padding;
}

/* Decodes base64 in place: the output is never longer than the input read so far. */
static bool engineio_decode_base64(char *text, size_t len, size_t *decoded_len)
{
    size_t left = engineio_compact_base64(text, len);
    *decoded_len = 0;
    for (const char *at = text; left > 0;) {
        unsigned char group[BASE64_GROUP] = {'A', 'A', 'A', 'A'}, bytes[BASE64_GROUP_BYTES];
        size_t taken = left < BASE64_GROUP ? left : BASE64_GROUP;
        memcpy(group, at, taken);
        if (taken == 1 || memchr(group, '=', sizeof(group)) ||
            EVP_DecodeBlock(bytes, group, BASE64_GROUP) != BASE64_GROUP_BYTES)
            return false;
        memcpy(text + *decoded_len, bytes, taken - 1);
        *decoded_len += taken - 1;
        at += taken;
        left -= taken;
    }
    return true;
}

bool engineio_parse(char *data, size_t len, bool binary, struct engineio_packet *out)
{
    if (binary) {
        *out = (struct engineio_packet){ENGINEIO_MESSAGE, true, data, len};
        return true;
    }
    if (len && data[0] == BASE64_MARK[0]) {
        *out = (struct engineio_packet){ENGINEIO_MESSAGE, true, data + 1, 0};
        return engineio_decode_base64(data + 1, len - 1, &out->len);
    }
    if (len == 0 || data[0] < '0' || data[0] >= '0' + ENGINEIO_TYPE_COUNT)
        return false;
    *out = (struct engineio_packet){(enum engineio_type)(data[0] - '0'), false, data + 1, len - 1};
    return true;
}

void engineio_payload_start(struct engineio_payload *payload, char *data, size_t len)
{
    *payload = (struct engineio_payload){.at = data, .end = data + len};
}

enum engineio_next engineio_payload_next(struct engineio_payload *payload,
                                         struct engineio_packet *out)
{
    if (payload->done)
        return ENGINEIO_END;
    size_t left = (size_t)(payload->end - payload->at);
    char *separator = left ? memchr(payload->at, ENGINEIO_SEPARATOR, left) : NULL;
    char *end = separator ? separator : payload->end;
    char *data = payload->at;
    payload->done = !separator;
    payload->at = separator ? separator + 1 : payload->end;
    if (++payload->count <= ENGINEIO_PACKETS_MAX &&
        engineio_parse(data, (size_t)(end - data), false, out))
        return ENGINEIO_PACKET;
    payload->done = true;
    return ENGINEIO_BAD;
}

void engineio_payload_append(struct buffer *payload, struct slice packet)
{
    if (payload->len)
        buffer_append_byte(payload, ENGINEIO_SEPARATOR);
    buffer_append_slice(payload, packet);
}

void engineio_payload_append_binary(struct buffer *payload, struct slice data)
{
    size_t groups = (data.len + BASE64_GROUP_BYTES - 1) / BASE64_GROUP_BYTES;
    engineio_payload_append(payload, SLICE(BASE64_MARK));
    if (!buffer_reserve(payload, groups * BASE64_GROUP + 1)) /* and a terminator */
        return;
    payload->len += (size_t)EVP_EncodeBlock((unsigned char *)payload->data + payload->len,
                                            (const unsigned char *)data.data, (int)data.len);
}

void engineio_open_write(struct buffer *out, const struct engineio_open *open)
{
    buffer_append_text(out, "0{");
    json_write_key_string(out, SLICE("sid"), open->sid);
    json_write_key(out, SLICE("upgrades"));
    json_write_array(out);
    if (open->upgrades)
        json_write_string(out, SLICE("websocket"));
    json_write_array_end(out);
    json_write_key_int(out, SLICE("pingInterval"), open->ping_interval_ms);
    json_write_key_int(out, SLICE("pingTimeout"), open->ping_timeout_ms);
    json_write_key_int(out, SLICE("maxPayload"), (int64_t)open->payload_bytes_max);
    json_write_object_end(out);
}
