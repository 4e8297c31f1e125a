#include "support/redis_server.h"

#include "base/random.h"
#include "redis/protocol/resp.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, STEP_MS = 20, ARGUMENTS_MAX = 32, FILES_OPEN_MAX = 8, SLOTS = 16384 };
enum { PORT_FIRST = 20000, PORT_COUNT = 12000, PORT_TRIES_MAX = 100 };

static void sleep_one_step(void)
{
    struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    nanosleep(&step, NULL);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    bool bound = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return bound;
}

/* Outside the range for outgoing connections, so that the port stays free while its server is down. */
static uint16_t find_free_port(void)
{
    struct random random;
    random_init_system(&random);
    for (int tries = 0; tries < PORT_TRIES_MAX; tries++) {
        uint16_t port = (uint16_t)(PORT_FIRST + random_below(&random, PORT_COUNT));
        if (is_free(port))
            return port;
    }
    fail_msg("no free port");
    return 0;
}

/* ---- commands ---- */

static int connect_to_server(const struct redis_server *server)
{
    struct sockaddr_in address = loopback(server->port);
    struct timeval timeout = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void write_text(const struct resp_value *value, struct buffer *out)
{
    if (value->type == RESP_INTEGER)
        buffer_append_int(out, value->integer);
    buffer_append_slice(out, value->text);
    for (size_t i = 0; i < value->count; i++) {
        write_text(&value->items[i], out);
        buffer_append_byte(out, ' ');
    }
}

/* Sends a command and appends its reply as text. Returns false when the connection ends before. */
static bool run_command(int fd, const struct slice *args, size_t count, struct buffer *text)
{
    struct buffer bytes = BUFFER_INIT;
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    enum resp_result result = RESP_INCOMPLETE;
    ssize_t got = 1;
    size_t len;
    resp_write_command(&bytes, args, count);
    bool sent = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL) == (ssize_t)bytes.len;
    buffer_clear(&bytes);
    while (sent && result == RESP_INCOMPLETE && got > 0) {
        char piece[4096];
        got = recv(fd, piece, sizeof(piece), 0);
        buffer_append(&bytes, piece, got > 0 ? (size_t)got : 0);
        result = resp_parse(&parser, buffer_slice(&bytes), &reply, &len);
    }
    if (result == RESP_COMPLETE)
        write_text(reply, text);
    buffer_free(&bytes);
    resp_parser_free(&parser);
    return result == RESP_COMPLETE;
}

static bool try_command(const struct redis_server *server, const struct slice *args, size_t count,
                        char *out)
{
    struct buffer text = BUFFER_INIT;
    struct slice login[] = {SLICE("AUTH"), slice_of(server->password)};
    int fd = connect_to_server(server);
    if (fd < 0)
        return false;
    bool answered = !server->password || run_command(fd, login, 2, &text);
    buffer_clear(&text);
    answered = answered && run_command(fd, args, count, &text);
    close(fd);
    snprintf(out, REDIS_SERVER_REPLY_MAX, "%.*s", SLICE_FORMAT(buffer_slice(&text)));
    buffer_free(&text);
    return answered;
}

static void run_listed_command(const struct redis_server *server, char *reply, va_list list)
{
    struct slice args[ARGUMENTS_MAX];
    size_t count = 0;
    for (const char *arg; (arg = va_arg(list, const char *)) != NULL;) {
        assert_true(count < ARGUMENTS_MAX);
        args[count++] = slice_of(arg);
    }
    assert_true(try_command(server, args, count, reply));
}

void redis_server_ask(const struct redis_server *server, char reply[REDIS_SERVER_REPLY_MAX], ...)
{
    va_list list;
    va_start(list, reply);
    run_listed_command(server, reply, list);
    va_end(list);
}

void redis_server_expect(const struct redis_server *server, const char *expected, ...)
{
    char reply[REDIS_SERVER_REPLY_MAX];
    va_list list;
    va_start(list, expected);
    run_listed_command(server, reply, list);
    va_end(list);
    assert_string_equal(reply, expected);
}

/* ---- processes ---- */

/* With REDIS_SERVER_BESIDE this is a program beside the test's own: the model of Redis instead of the real one. */
static void find_redis_program(char path[PATH_MAX])
{
#ifdef REDIS_SERVER_BESIDE
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - sizeof(REDIS_SERVER_BESIDE));
    while (len > 0 && path[len - 1] != '/')
        len--;
    memcpy(path + (len > 0 ? len : 0), REDIS_SERVER_BESIDE, sizeof(REDIS_SERVER_BESIDE));
#else
    snprintf(path, PATH_MAX, "redis-server");
#endif
}

static void run_sentinel(struct redis_server *server)
{
    char path[REDIS_SERVER_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/sentinel.conf", server->folder);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execlp("redis-server", "redis-server", path, "--sentinel", (char *)NULL);
    _exit(127);
}

static void run_redis(struct redis_server *server)
{
    char program[PATH_MAX];
    char port[8];
    char bus_port[8];
    const char *arguments[REDIS_SERVER_OPTIONS_MAX + 20] = {
        "redis-server", "--port",         port,     "--bind",    "127.0.0.1",
        "--dir",        server->folder,   "--save", "",          "--appendonly",
        "no",           "--cluster-port", bus_port, "--logfile", "redis.log"};
    size_t count = 15;
    snprintf(port, sizeof(port), "%u", server->port);
    snprintf(bus_port, sizeof(bus_port), "%u", server->bus_port);
    for (size_t i = 0; server->options[i]; i++)
        arguments[count++] = server->options[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    find_redis_program(program);
    execvp(program, (char *const *)arguments);
    _exit(127);
}

static void await_server(const struct redis_server *server)
{
    const struct slice args[] = {SLICE("PING")};
    char reply[REDIS_SERVER_REPLY_MAX] = "";
    for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += STEP_MS) {
        if (try_command(server, args, 1, reply) && reply[0])
            return;
        assert_int_equal(waitpid(server->pid, NULL, WNOHANG), 0); /* see redis.log in its folder */
        sleep_one_step();
    }
    fail_msg("redis-server does not answer");
}

void redis_server_restart(struct redis_server *server)
{
    assert_int_equal(server->pid, 0);
    server->pid = fork();
    if (server->pid == 0 && server->sentinel)
        run_sentinel(server);
    if (server->pid == 0)
        run_redis(server);
    assert_true(server->pid > 0);
    await_server(server);
}

static void prepare_server(struct redis_server *server)
{
    *server = (struct redis_server){.port = find_free_port(), .bus_port = find_free_port()};
    snprintf(server->folder, sizeof(server->folder), "%s/rollcall-redis-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(server->folder));
}

void redis_server_start_sentinel(struct redis_server *server, const char *name,
                                 uint16_t master_port, unsigned quorum)
{
    char path[REDIS_SERVER_PATH_MAX + 16];
    prepare_server(server);
    server->sentinel = true;
    snprintf(path, sizeof(path), "%s/sentinel.conf", server->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "port %u\nbind 127.0.0.1\ndir %s\nlogfile redis.log\n"
            "sentinel monitor %s 127.0.0.1 %u %u\n"
            "sentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 2000\n",
            server->port, server->folder, name, master_port, quorum, name, name);
    assert_int_equal(fclose(file), 0);
    redis_server_restart(server);
}

void redis_server_start(struct redis_server *server, const char *const *options)
{
    prepare_server(server);
    for (size_t i = 0; options[i]; i++) {
        assert_true(i < REDIS_SERVER_OPTIONS_MAX);
        server->options[i] = options[i];
    }
    redis_server_restart(server);
}

void redis_server_kill(struct redis_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void redis_server_pause(struct redis_server *server)
{
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
}

void redis_server_resume(struct redis_server *server)
{
    assert_int_equal(kill(server->pid, SIGCONT), 0);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void redis_server_stop(struct redis_server *server)
{
    redis_server_kill(server);
    if (server->folder[0])
        nftw(server->folder, remove_entry, FILES_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
    server->folder[0] = '\0';
}

/* ---- clusters ---- */

long redis_server_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtol(at + strlen(name) + 1, NULL, 10) : -1;
}

void redis_cluster_id(const struct redis_server *server, char id[REDIS_SERVER_REPLY_MAX])
{
    redis_server_ask(server, id, "CLUSTER", "MYID", NULL);
}

static bool has_cluster_value(const struct redis_server *server, const char *name,
                              const char *value)
{
    char reply[REDIS_SERVER_REPLY_MAX];
    char line[64];
    snprintf(line, sizeof(line), "%s:%s\r\n", name, value);
    redis_server_ask(server, reply, "CLUSTER", "INFO", NULL);
    return strstr(reply, line) != NULL;
}

static void await_cluster_value(const struct redis_server *servers, const char *name,
                                const char *value)
{
    size_t ready = 0;
    for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += STEP_MS) {
        while (ready < REDIS_CLUSTER_SERVERS && has_cluster_value(&servers[ready], name, value))
            ready++;
        if (ready == REDIS_CLUSTER_SERVERS)
            return;
        sleep_one_step();
    }
    fail_msg("the cluster does not reach %s %s", name, value);
}

static void assign_slots(const struct redis_server *server, unsigned index)
{
    char first[8];
    char last[8];
    char epoch[8];
    snprintf(first, sizeof(first), "%u", index * SLOTS / REDIS_CLUSTER_MASTERS % SLOTS);
    snprintf(last, sizeof(last), "%u", ((index + 1) * SLOTS / REDIS_CLUSTER_MASTERS - 1) % SLOTS);
    snprintf(epoch, sizeof(epoch), "%u", index % SLOTS + 1);
    redis_server_expect(server, "OK", "CLUSTER", "ADDSLOTSRANGE", first, last, NULL);
    redis_server_expect(server, "OK", "CLUSTER", "SET-CONFIG-EPOCH", epoch, NULL);
}

static void join_cluster(const struct redis_server *first, const struct redis_server *joining)
{
    char port[8];
    char bus_port[8];
    snprintf(port, sizeof(port), "%u", joining->port);
    snprintf(bus_port, sizeof(bus_port), "%u", joining->bus_port);
    redis_server_expect(first, "OK", "CLUSTER", "MEET", "127.0.0.1", port, bus_port, NULL);
}

void redis_cluster_start(struct redis_server servers[REDIS_CLUSTER_SERVERS])
{
    for (size_t i = 0; i < REDIS_CLUSTER_SERVERS; i++)
        redis_server_start(&servers[i],
                           REDIS_OPTIONS("--cluster-enabled", "yes", "--cluster-node-timeout",
                                         "1000", "--repl-diskless-sync-delay", "0"));
    for (unsigned i = 0; i < REDIS_CLUSTER_MASTERS; i++)
        assign_slots(&servers[i], i);
    for (size_t i = 1; i < REDIS_CLUSTER_SERVERS; i++)
        join_cluster(&servers[0], &servers[i]);
    await_cluster_value(servers, "cluster_known_nodes", "6");
    for (size_t i = REDIS_CLUSTER_MASTERS; i < REDIS_CLUSTER_SERVERS; i++) {
        char master[REDIS_SERVER_REPLY_MAX];
        redis_cluster_id(&servers[i - REDIS_CLUSTER_MASTERS], master);
        redis_server_expect(&servers[i], "OK", "CLUSTER", "REPLICATE", master, NULL);
    }
    await_cluster_value(servers, "cluster_size", "3");
    await_cluster_value(servers, "cluster_state", "ok");
}

void redis_cluster_stop(struct redis_server servers[REDIS_CLUSTER_SERVERS])
{
    for (size_t i = 0; i < REDIS_CLUSTER_SERVERS; i++)
        redis_server_stop(&servers[i]);
}

int redis_cluster_set_up(void **state)
{
    static struct redis_server servers[REDIS_CLUSTER_SERVERS];
    redis_cluster_start(servers);
    *state = servers;
    return 0;
}

int redis_cluster_tear_down(void **state)
{
    redis_cluster_stop(*state);
    return 0;
}
