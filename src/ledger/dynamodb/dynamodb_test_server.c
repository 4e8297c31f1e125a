#include "ledger/dynamodb/dynamodb_test_server.h"

#include "ledger/dynamodb/dynamodb_admin.h"
#include "ledger/dynamodb/dynamodb_ledger.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { BODY_MAX = 4096, ANSWER_MAX = 1 << 20 };

static const char LOOPBACK[] = "http://127.0.0.1:";

static const struct config_dynamodb SETTINGS = {.retry = {3, 100, 5000},
                                                .transaction_conflict = {5, 50}};

bool dynamodb_test_server_init(void)
{
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    if (getenv("TEST_DYNAMODB"))
        return true;
    puts("TEST_DYNAMODB names no server: make test-cloud starts one");
    return false;
}

void dynamodb_test_server_make_tables(struct dynamodb_test_server *server)
{
    static unsigned made;
    char error[DYNAMODB_ADMIN_ERROR_MAX];
    const char *endpoint = getenv("TEST_DYNAMODB");
    if (!endpoint || strncmp(endpoint, LOOPBACK, strlen(LOOPBACK)) != 0) {
        fail_msg("the server is not on the loopback");
        return;
    }
    server->port = (unsigned)strtoul(endpoint + strlen(LOOPBACK), NULL, 10);
    snprintf(server->prefix, sizeof(server->prefix), "a%d-%u-", (int)getpid(), made++);
    snprintf(server->url, sizeof(server->url), "dynamodb://local?endpoint=%s&prefix=%s", endpoint,
             server->prefix);
    if (!dynamodb_admin_create_tables(server->url, error))
        fail_msg("%s", error);
}

struct ledger *dynamodb_test_server_open(const struct dynamodb_test_server *server)
{
    char error[DYNAMODB_LEDGER_ERROR_TEXT_MAX];
    struct ledger *ledger = dynamodb_ledger_open(server->url, &SETTINGS, error);
    if (!ledger)
        fail_msg("%s", error);
    return ledger;
}

/* ---- calls that bypass the ledger ---- */

static size_t expand_test_body(const struct dynamodb_test_server *server, const char *text,
                               char *body)
{
    size_t len = 0;
    for (; *text; text++) {
        if (*text == '@')
            len += (size_t)snprintf(body + len, BODY_MAX - len, "%s", server->prefix);
        else
            body[len++] = *text == '\'' ? '"' : *text;
        assert_true(len < BODY_MAX);
    }
    return len;
}

static int connect_test_server(const struct dynamodb_test_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* DynamoDB Local does not verify signatures. */
const char *dynamodb_test_server_call(const struct dynamodb_test_server *server, const char *target,
                                      const char *format, ...)
{
    static char answer[ANSWER_MAX];
    char text[BODY_MAX], body[BODY_MAX], request[2 * BODY_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t body_len = expand_test_body(server, text, body);
    int len =
        snprintf(request, sizeof(request),
                 "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "X-Amz-Target: DynamoDB_20120810.%s\r\nContent-Length: %zu\r\n"
                 "Content-Type: application/x-amz-json-1.0\r\nAuthorization: AWS4-HMAC-SHA256 "
                 "Credential=test/20260101/local/dynamodb/aws4_request, SignedHeaders=host, "
                 "Signature=00\r\n\r\n%.*s",
                 target, body_len, (int)body_len, body);
    int fd = connect_test_server(server);
    assert_int_equal(write(fd, request, (size_t)len), len);
    size_t got = 0;
    for (ssize_t n; (n = read(fd, answer + got, sizeof(answer) - 1 - got)) > 0;)
        got += (size_t)n;
    close(fd);
    answer[got] = '\0';
    if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
        fail_msg("%s: %s", target, answer);
    return answer;
}
