/*
 * The PROXY protocol: a header is found at the same place by a reader that splits the text with sscanf() or takes the
 * declared length; each shorter piece of a header is incomplete; bytes after it change nothing.
 */
#include "fuzz.h"
#include "protocol/proxy_header.h"

/* Returns the length of a header of version 1, or 0. It may accept more than the specification allows. */
static size_t oracle_text_header(const char *data, size_t size)
{
    char line[PROXY_V1_BYTES_MAX + 1] = {0}, family[16], from[64], to[64], end;
    unsigned from_port, to_port;
    memcpy(line, data, size < PROXY_V1_BYTES_MAX ? size : PROXY_V1_BYTES_MAX);
    char *stop = strstr(line, "\r\n");
    if (!stop)
        return 0;
    *stop = '\0';
    if (strncmp(line, "PROXY UNKNOWN", 13) == 0 && (line[13] == ' ' || line[13] == '\0'))
        return (size_t)(stop - line) + 2;
    return sscanf(line, "PROXY %15s %63s %63s %5u %5u%c", family, from, to, &from_port, &to_port,
                  &end) == 5
               ? (size_t)(stop - line) + 2
               : 0;
}

static size_t oracle_binary_header(const uint8_t *data, size_t size)
{
    return size >= 16 ? 16 + (size_t)data[14] * 256 + data[15] : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = {(const char *)data, size};
    struct proxy_header header, again;
    enum proxy_result result = proxy_header_parse(bytes, &header);
    fuzz_require(result != PROXY_INCOMPLETE || size < PROXY_HEADER_BYTES_MAX,
                 "headers are bounded");
    if (result != PROXY_COMPLETE)
        return 0;
    size_t expected =
        data[0] == 'P' ? oracle_text_header(bytes.data, size) : oracle_binary_header(data, size);
    fuzz_require(header.len == expected && header.len <= size, "the header ends where it should");
    for (size_t len = 0; len < header.len; len++)
        fuzz_require(proxy_header_parse(slice_first(bytes, len), &again) == PROXY_INCOMPLETE,
                     "a piece of a header is incomplete");
    fuzz_require(proxy_header_parse(slice_first(bytes, header.len), &again) == PROXY_COMPLETE &&
                     again.len == header.len && again.names_client == header.names_client,
                 "bytes after the header change nothing");
    return 0;
}
