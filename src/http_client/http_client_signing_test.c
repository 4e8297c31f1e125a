/* Signed requests as they arrive on the wire, checked with a verifier of the test's own that knows nothing of libcurl:
 * it computes AWS Signature Version 4 from the received bytes. */
#include "http_client/http_client.h"
#include "support/script_server.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#define ACCESS_KEY "AKIDEXAMPLE0123"
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define TARGET "X-Amz-Target: DynamoDB_20120810.PutItem"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

enum { TURN_MS = 5, TURNS_MAX = 6000, SHA256_BYTES = 32, SHA256_HEX = 65 };

/* ---- the verifier ---- */

static void write_hex(char out[SHA256_HEX], const unsigned char bytes[SHA256_BYTES])
{
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void hash_hex(char out[SHA256_HEX], const char *text)
{
    unsigned char digest[SHA256_BYTES];
    assert_true(EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL));
    write_hex(out, digest);
}

static void hmac_step(unsigned char key[SHA256_BYTES], const char *text)
{
    unsigned char next[SHA256_BYTES];
    unsigned len;
    assert_non_null(HMAC(EVP_sha256(), key, SHA256_BYTES, (const unsigned char *)text, strlen(text),
                         next, &len));
    memcpy(key, next, SHA256_BYTES);
}

/* Copies the value of the received header; fails the test if there is not exactly one. */
static void copy_header(const char *request, const char *name, char *out, size_t size)
{
    const char *head_end = strstr(request, "\r\n\r\n");
    size_t found = 0;
    for (const char *line = strstr(request, "\r\n"); line && line < head_end;
         line = strstr(line + 2, "\r\n")) {
        const char *at = line + 2;
        if (strncasecmp(at, name, strlen(name)) != 0 || at[strlen(name)] != ':')
            continue;
        at += strlen(name) + 1;
        at += strspn(at, " ");
        snprintf(out, size, "%.*s", (int)strcspn(at, "\r"), at);
        found++;
    }
    assert_int_equal(found, 1);
}

static void copy_between(const char *text, const char *before, const char *stops, char *out,
                         size_t size)
{
    const char *at = strstr(text, before);
    assert_non_null(at);
    at += strlen(before);
    snprintf(out, size, "%.*s", (int)strcspn(at, stops), at);
}

/* method, path, query, each signed header, their names, the body's hash */
static void write_canonical_request(const char *request, const char *signed_headers, char *out,
                                    size_t size)
{
    char names[512];
    char value[2048];
    char body_hash[SHA256_HEX];
    char *position;
    size_t method = strcspn(request, " ");
    size_t path = strcspn(request + method + 1, " ");
    size_t len = (size_t)snprintf(out, size, "%.*s\n%.*s\n\n", (int)method, request, (int)path,
                                  request + method + 1);
    snprintf(names, sizeof(names), "%s", signed_headers);
    for (char *name = strtok_r(names, ";", &position); name;
         name = strtok_r(NULL, ";", &position)) {
        copy_header(request, name, value, sizeof(value));
        len += (size_t)snprintf(out + len, size - len, "%s:%s\n", name, value);
    }
    hash_hex(body_hash, strstr(request, "\r\n\r\n") + 4);
    snprintf(out + len, size - len, "\n%s\n%s", signed_headers, body_hash);
}

static void compute_signature(const char *date, const char *region, const char *to_sign,
                              char out[SHA256_HEX])
{
    char day[9];
    unsigned char key[SHA256_BYTES];
    unsigned len;
    snprintf(day, sizeof(day), "%.8s", date);
    HMAC(EVP_sha256(), "AWS4" SECRET, (int)strlen("AWS4" SECRET), (const unsigned char *)day,
         strlen(day), key, &len);
    hmac_step(key, region);
    hmac_step(key, "dynamodb");
    hmac_step(key, "aws4_request");
    hmac_step(key, to_sign);
    write_hex(out, key);
}

static void assert_signed(const char *request, const char *signed_headers_expected)
{
    char authorization[1024];
    char signature[256];
    char signed_headers[512];
    char date[32];
    char canonical[8192];
    char canonical_hash[SHA256_HEX];
    char to_sign[512];
    char computed[SHA256_HEX];
    char scope[128];
    copy_header(request, "Authorization", authorization, sizeof(authorization));
    copy_header(request, "X-Amz-Date", date, sizeof(date));
    copy_between(authorization, "Signature=", ", ", signature, sizeof(signature));
    copy_between(authorization, "SignedHeaders=", ", ", signed_headers, sizeof(signed_headers));
    copy_between(authorization, "Credential=" ACCESS_KEY "/", ", ", scope, sizeof(scope));
    assert_string_equal(signed_headers, signed_headers_expected);
    write_canonical_request(request, signed_headers, canonical, sizeof(canonical));
    hash_hex(canonical_hash, canonical);
    snprintf(to_sign, sizeof(to_sign), "AWS4-HMAC-SHA256\n%s\n%s\n%s", date, scope, canonical_hash);
    compute_signature(date, "eu-central-1", to_sign, computed);
    assert_string_equal(computed, signature);
    assert_memory_equal(scope, date, 8);
    assert_string_equal(scope + 8, "/eu-central-1/dynamodb/aws4_request");
}

/* ---- the exchange ---- */

struct fixture {
    struct loop loop;
    struct http_client *client;
    struct script_server server;
    unsigned status;
    size_t completed;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    memset(&fixture, 0, sizeof(fixture));
    script_server_start(&fixture.server);
    assert_true(loop_init(&fixture.loop));
    fixture.client = http_client_make(&fixture.loop, 2);
    assert_non_null(fixture.client);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    http_client_free(&fixture->client);
    loop_free(&fixture->loop);
    script_server_stop(&fixture->server);
    return 0;
}

static void on_signed_response(void *arg, const struct http_client_response *response)
{
    struct fixture *fixture = arg;
    fixture->status = response->status;
    fixture->completed++;
}

/* Sends one signed request and returns its bytes as the server received them. */
static const char *send_signed(struct fixture *fixture, const char *session_token,
                               struct slice body)
{
    static const char *const headers[] = {"Content-Type: application/x-amz-json-1.0", TARGET, NULL};
    struct http_client_signing signing = {.scope = "aws:amz:eu-central-1:dynamodb",
                                          .access_key_id = ACCESS_KEY,
                                          .secret_access_key = SECRET,
                                          .session_token = session_token};
    struct http_client_request request = {
        .method = "POST",
        .url = fixture->server.url,
        .headers = headers,
        .body = body,
        .signing = &signing,
        .time_limit_ms = 20000,
        .body_bytes_max = 100,
    };
    size_t before = fixture->completed;
    script_server_then(&fixture->server, ANSWER);
    assert_true(http_client_send(fixture->client, &request, on_signed_response, fixture));
    for (int i = 0; i < TURNS_MAX && fixture->completed == before; i++) {
        loop_turn(&fixture->loop, TURN_MS);
        script_server_serve(&fixture->server);
    }
    assert_int_equal(fixture->completed, before + 1);
    assert_int_equal(fixture->status, 200);
    return fixture->server.requests[fixture->server.request_count - 1];
}

/* ---- tests ---- */

static void test_request_is_signed_over_what_arrives(void **state)
{
    const char *request = send_signed(*state, NULL, SLICE("{\"TableName\":\"chats\"}"));
    assert_signed(request, "content-type;host;x-amz-date;x-amz-target");
    assert_null(strcasestr(request, "X-Amz-Security-Token"));
    assert_null(strstr(request, SECRET));
}

static void test_session_token_is_sent_and_signed(void **state)
{
    const char *request = send_signed(*state, "FwoGZXIvYXdz+/=token", SLICE("{\"a\":1}"));
    assert_signed(request, "content-type;host;x-amz-date;x-amz-security-token;x-amz-target");
    assert_non_null(strstr(request, "X-Amz-Security-Token: FwoGZXIvYXdz+/=token\r\n"));
}

static void test_body_of_several_kilobytes_and_any_text_is_signed(void **state)
{
    static char body[8001];
    memset(body, 'x', sizeof(body) - 1);
    memcpy(body, "{\"text\":\"\\u0000 \xc3\xa4 %41 +&=\"}", 29);
    const char *request = send_signed(*state, NULL, slice_of(body));
    assert_signed(request, "content-type;host;x-amz-date;x-amz-target");
    assert_string_equal(strstr(request, "\r\n\r\n") + 4, body);
}

static void test_signed_requests_share_a_connection(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 5; i++)
        assert_signed(send_signed(fixture, NULL, SLICE("{}")),
                      "content-type;host;x-amz-date;x-amz-target");
    assert_int_equal(fixture->server.request_count, 5);
    assert_int_equal(fixture->server.connection_count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_request_is_signed_over_what_arrives),
        TEST(test_session_token_is_sent_and_signed),
        TEST(test_body_of_several_kilobytes_and_any_text_is_signed),
        TEST(test_signed_requests_share_a_connection),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
