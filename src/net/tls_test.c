/* TLS over a socket pair with OpenSSL's own client: handshake, both directions, idle connections, bad clients. */
#include "net/tls.h"

#include "base/container.h"
#include "net/stream.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE_BYTES = 300000 };

static char directory[] = "/tmp/rollcall-tls-XXXXXX";
static char certificate_file[64], key_file[64], other_key_file[64], locked_key_file[64];
static char policy_file[64];

/* ---- files ---- */

static void write_key(const char *path, EVP_PKEY *key, const char *password)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PKCS8PrivateKey(file, key, password ? EVP_aes_128_cbc() : NULL, NULL,
                                               0, NULL, (void *)password),
                     1);
    fclose(file);
}

static void write_certificate(const char *path, EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    X509_free(certificate);
}

/* Lets the system's policy allow old versions, so that only our own minimum can refuse them. OpenSSL reads
 * this once, when it is first used. */
static void allow_old_versions(void)
{
    FILE *file = fopen(policy_file, "w");
    assert_non_null(file);
    fputs("openssl_conf = main\n[main]\nssl_conf = ssl\n[ssl]\nsystem_default = lax\n[lax]\n"
          "MinProtocol = TLSv1\nCipherString = DEFAULT@SECLEVEL=0\n",
          file);
    fclose(file);
    setenv("OPENSSL_CONF", policy_file, 1);
}

static int make_files(void **unused)
{
    (void)unused;
    if (!mkdtemp(directory))
        return -1;
    snprintf(policy_file, sizeof(policy_file), "%s/openssl.cnf", directory);
    allow_old_versions();
    EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
    if (!key || !other)
        return -1;
    snprintf(certificate_file, sizeof(certificate_file), "%s/certificate.pem", directory);
    snprintf(key_file, sizeof(key_file), "%s/key.pem", directory);
    snprintf(other_key_file, sizeof(other_key_file), "%s/other.pem", directory);
    snprintf(locked_key_file, sizeof(locked_key_file), "%s/locked.pem", directory);
    write_certificate(certificate_file, key);
    write_key(key_file, key, NULL);
    write_key(other_key_file, other, NULL);
    write_key(locked_key_file, key, "secret");
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
    return 0;
}

static int remove_files(void **unused)
{
    (void)unused;
    unlink(policy_file);
    unlink(certificate_file);
    unlink(key_file);
    unlink(other_key_file);
    unlink(locked_key_file);
    return rmdir(directory);
}

static void expect_refused(const char *certificate, const char *key, const char *named)
{
    char error[TLS_ERROR_TEXT_MAX] = "";
    assert_null(tls_context_load(certificate, key, error));
    if (!strstr(error, named))
        fail_msg("expected %s in: %s", named, error);
}

static void unusable_files_are_named_in_the_error(void **unused)
{
    (void)unused;
    char missing[80];
    snprintf(missing, sizeof(missing), "%s/missing.pem", directory);
    expect_refused(missing, key_file, missing);
    expect_refused(missing, key_file, "No such file");
    expect_refused(certificate_file, missing, missing);
    expect_refused(key_file, key_file, key_file);
    expect_refused(certificate_file, certificate_file, certificate_file);
    expect_refused(certificate_file, other_key_file, "does not belong to certificate");
}

static void encrypted_key_is_refused_without_a_prompt(void **unused)
{
    (void)unused;
    expect_refused(certificate_file, locked_key_file, locked_key_file);
}

/* ---- a server's stream and a client ---- */

struct server {
    struct stream stream;
    char in[LARGE_BYTES];
    size_t in_len;
    const char *out;
    size_t out_len;
    size_t out_sent;
    unsigned ended, closed;
};

static struct loop loop;
static struct stream_set set;
static struct server server;
static struct tls_context *context;
static SSL_CTX *client_context;
static SSL *client;
static int client_fd;

static struct server *server_of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct server, stream);
}

static void on_bytes(struct stream *stream, char *data, size_t len)
{
    struct server *self = server_of(stream);
    assert_true(self->in_len + len <= sizeof(self->in));
    memcpy(self->in + self->in_len, data, len);
    self->in_len += len;
}

static void on_ended(struct stream *stream)
{
    server_of(stream)->ended++;
}

static size_t gather(struct stream *stream, struct iovec *out, size_t max)
{
    struct server *self = server_of(stream);
    (void)max;
    out[0] = (struct iovec){(char *)self->out + self->out_sent, self->out_len - self->out_sent};
    return self->out_sent < self->out_len;
}

static bool on_sent(struct stream *stream, size_t bytes)
{
    struct server *self = server_of(stream);
    self->out_sent += bytes;
    return self->out_sent < self->out_len;
}

static void on_closed(struct stream *stream)
{
    server_of(stream)->closed++;
}

static const struct stream_owner OWNER = {on_bytes, on_ended, gather, on_sent, on_closed};

static int open_pair(void **unused)
{
    (void)unused;
    char error[TLS_ERROR_TEXT_MAX];
    int pair[2];
    memset(&server, 0, sizeof(server));
    context = tls_context_load(certificate_file, key_file, error);
    client_context = SSL_CTX_new(TLS_client_method());
    client = client_context ? SSL_new(client_context) : NULL;
    if (!context || !client || !loop_init(&loop) || !stream_set_init(&set, &loop) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
        return -1;
    client_fd = pair[0];
    SSL_set_fd(client, client_fd);
    SSL_set_connect_state(client);
    return stream_open(&server.stream, &set, &OWNER, pair[1], tls_connection_make(context, pair[1]))
               ? 0
               : -1;
}

static int close_pair(void **unused)
{
    (void)unused;
    stream_close(&server.stream);
    loop_turn(&loop, 0);
    loop_turn(&loop, 0);
    assert_int_equal(server.closed, 1);
    SSL_free(client);
    SSL_CTX_free(client_context);
    tls_context_drop(&context);
    stream_set_free(&set);
    loop_free(&loop);
    close(client_fd);
    return 0;
}

static void turn(void)
{
    loop_turn(&loop, 0);
}

static void do_handshake(void)
{
    for (int turns = 0; SSL_do_handshake(client) != 1; turns++) {
        assert_true(turns < 100);
        turn();
    }
    turn();
}

static void client_write(const char *text)
{
    assert_int_equal(SSL_write(client, text, (int)strlen(text)), (int)strlen(text));
    turn();
    turn();
}

static void server_write(const char *text, size_t len)
{
    server.out = text;
    server.out_len = len;
    server.out_sent = 0;
    stream_want_write(&server.stream);
    turn();
}

static void expect_client_reads(const char *text)
{
    char in[64] = "";
    assert_int_equal(SSL_read(client, in, sizeof(in) - 1), (int)strlen(text));
    assert_string_equal(in, text);
}

static void tls_1_2_and_1_3_carry_bytes_both_ways(void **state)
{
    int version = **(int **)state;
    SSL_set_max_proto_version(client, version);
    SSL_set_min_proto_version(client, version);
    do_handshake();
    assert_int_equal(SSL_version(client), version);
    client_write("hello");
    assert_int_equal(server.in_len, 5);
    assert_memory_equal(server.in, "hello", 5);
    server_write("good day", 8);
    expect_client_reads("good day");
}

static void older_versions_are_refused(void **unused)
{
    (void)unused;
    SSL_CTX *lax = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_get_min_proto_version(lax),
                     TLS1_VERSION); /* the system does not refuse it */
    assert_int_equal(SSL_CTX_get_security_level(lax), 0);
    SSL_CTX_free(lax);
    SSL_set_min_proto_version(client, TLS1_VERSION);
    SSL_set_max_proto_version(client, TLS1_1_VERSION);
    for (int i = 0; i < 10 && SSL_do_handshake(client) != 1; i++)
        turn();
    assert_false(SSL_is_init_finished(client));
    assert_int_equal(server.ended, 1);
    assert_true(server.stream.failed);
}

static void connection_continues_after_its_buffers_were_freed(void **unused)
{
    (void)unused;
    do_handshake();
    for (int i = 0; i < 3; i++) {
        stream_rest(&server.stream);
        client_write("still here");
        assert_memory_equal(server.in + server.in_len - 10, "still here", 10);
        stream_rest(&server.stream);
        server_write("so am I", 7);
        expect_client_reads("so am I");
    }
}

static void rest_within_a_record_loses_no_bytes(void **unused)
{
    (void)unused;
    char record[512];
    BIO *pipe = BIO_new(BIO_s_mem());
    do_handshake();
    SSL_set0_wbio(client, pipe); /* so that the record can be sent in two pieces */
    SSL_write(client, "in two pieces", 13);
    int len = BIO_read(pipe, record, sizeof(record));
    assert_true(len > 10);
    assert_int_equal(write(client_fd, record, 10), 10);
    turn();
    stream_rest(&server.stream);
    assert_int_equal(write(client_fd, record + 10, (size_t)len - 10), len - 10);
    turn();
    turn();
    assert_int_equal(server.in_len, 13);
    assert_memory_equal(server.in, "in two pieces", 13);
}

static void bytes_beyond_the_socket_buffer_arrive(void **unused)
{
    (void)unused;
    static char large[LARGE_BYTES], in[LARGE_BYTES];
    size_t in_len = 0;
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i % 251);
    do_handshake();
    server_write(large, sizeof(large));
    for (int turns = 0; in_len < sizeof(in) && turns < 10000; turns++) {
        int got = SSL_read(client, in + in_len, (int)(sizeof(in) - in_len));
        in_len += got > 0 ? (size_t)got : 0;
        turn();
    }
    assert_int_equal(in_len, sizeof(in));
    assert_memory_equal(in, large, sizeof(in));
}

static void many_records_are_received_whole(void **unused)
{
    (void)unused;
    static char large[LARGE_BYTES];
    int written = 0;
    memset(large, 'x', sizeof(large));
    SSL_set_mode(client, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    do_handshake();
    for (int turns = 0; written < (int)sizeof(large) && turns < 10000; turns++) {
        int now = SSL_write(client, large + written, (int)sizeof(large) - written);
        written += now > 0 ? now : 0;
        turn();
    }
    for (int turns = 0; server.in_len < sizeof(large) && turns < 100; turns++)
        turn();
    assert_int_equal(server.in_len, sizeof(large));
}

static void plain_text_client_is_ended(void **unused)
{
    (void)unused;
    const char plain[] = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    assert_int_equal(write(client_fd, plain, sizeof(plain) - 1), sizeof(plain) - 1);
    turn();
    assert_int_equal(server.ended, 1);
    assert_true(server.stream.failed);
    assert_int_equal(server.in_len, 0);
}

static void client_lost_in_the_handshake_is_ended(void **unused)
{
    (void)unused;
    SSL_do_handshake(client);
    turn();
    shutdown(client_fd, SHUT_RDWR);
    turn();
    turn();
    assert_int_equal(server.ended, 1);
}

static void orderly_end_is_not_a_failure(void **unused)
{
    (void)unused;
    do_handshake();
    SSL_shutdown(client);
    turn();
    assert_int_equal(server.ended, 1);
    assert_false(server.stream.failed);
}

static void shutdown_sends_close_notify_and_still_receives(void **unused)
{
    (void)unused;
    char in[16];
    do_handshake();
    server_write("bye", 3);
    stream_shutdown(&server.stream);
    expect_client_reads("bye");
    assert_int_equal(SSL_read(client, in, sizeof(in)), 0);
    assert_int_equal(SSL_get_error(client, 0), SSL_ERROR_ZERO_RETURN);
    client_write("one more thing"); /* is still received */
    assert_int_equal(server.in_len, 14);
}

static void context_outlives_its_last_reference_for_open_connections(void **unused)
{
    (void)unused;
    struct tls_context *shared = tls_context_share(context);
    tls_context_drop(&shared);
    assert_null(shared);
    tls_context_drop(&context); /* a reload */
    do_handshake();
    client_write("hello");
    assert_int_equal(server.in_len, 5);
}

static int tls_1_2 = TLS1_2_VERSION, tls_1_3 = TLS1_3_VERSION;

static int open_1_2(void **state)
{
    *state = &tls_1_2;
    return open_pair(NULL);
}

static int open_1_3(void **state)
{
    *state = &tls_1_3;
    return open_pair(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unusable_files_are_named_in_the_error),
        cmocka_unit_test(encrypted_key_is_refused_without_a_prompt),
        cmocka_unit_test_setup_teardown(tls_1_2_and_1_3_carry_bytes_both_ways, open_1_2,
                                        close_pair),
        cmocka_unit_test_setup_teardown(tls_1_2_and_1_3_carry_bytes_both_ways, open_1_3,
                                        close_pair),
        TEST(older_versions_are_refused),
        TEST(connection_continues_after_its_buffers_were_freed),
        TEST(rest_within_a_record_loses_no_bytes),
        TEST(bytes_beyond_the_socket_buffer_arrive),
        TEST(many_records_are_received_whole),
        TEST(plain_text_client_is_ended),
        TEST(client_lost_in_the_handshake_is_ended),
        TEST(orderly_end_is_not_a_failure),
        TEST(shutdown_sends_close_notify_and_still_receives),
        TEST(context_outlives_its_last_reference_for_open_connections),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
