#include "log/log.h"

#include "base/random.h"
#include "text/time_text.h"
#include "text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Redirects standard error to a file between capture_start() and capture_end(). */
struct capture {
    FILE *file;
    int stderr_copy;
    char text[1 << 16];
};

static void capture_start(struct capture *capture)
{
    capture->file = tmpfile();
    assert_non_null(capture->file);
    capture->stderr_copy = dup(STDERR_FILENO);
    dup2(fileno(capture->file), STDERR_FILENO);
}

static void capture_end(struct capture *capture)
{
    dup2(capture->stderr_copy, STDERR_FILENO);
    close(capture->stderr_copy);
    rewind(capture->file);
    size_t len = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
    capture->text[len] = '\0';
    fclose(capture->file);
}

static unsigned line_count(const char *text)
{
    unsigned count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void line_has_time_level_event_and_pairs(void **state)
{
    (void)state;
    struct capture capture;
    log_init(LOG_LEVEL_INFO, false);
    capture_start(&capture);
    log_warn("store_slow", "shard=%d took_ms=%d", 3, 250);
    capture_end(&capture);
    int64_t wall_ms;
    assert_memory_equal(capture.text, "ts=", 3);
    assert_true(time_text_parse((struct slice){capture.text + 3, TIME_TEXT_LEN}, &wall_ms));
    assert_true(wall_ms > 1600000000000);
    assert_string_equal(capture.text + 3 + TIME_TEXT_LEN,
                        " level=warn event=store_slow shard=3 took_ms=250\n");
}

static void journal_line_has_syslog_level_and_no_time(void **state)
{
    (void)state;
    struct capture capture;
    log_init(LOG_LEVEL_DEBUG, true);
    capture_start(&capture);
    log_debug("a", "n=%d", 1);
    log_info("b", "n=%d", 2);
    log_warn("c", "n=%d", 3);
    log_error("d", "n=%d", 4);
    log_error("e", "%s", "");
    capture_end(&capture);
    assert_string_equal(capture.text, "<7>event=a n=1\n<6>event=b n=2\n<4>event=c n=3\n"
                                      "<3>event=d n=4\n<3>event=e\n");
}

static void line_below_the_level_is_not_formatted(void **state)
{
    (void)state;
    struct capture capture;
    int evaluated = 0;
    log_init(LOG_LEVEL_WARN, true);
    assert_false(log_enabled(LOG_LEVEL_INFO));
    assert_true(log_enabled(LOG_LEVEL_WARN));
    capture_start(&capture);
    log_info("quiet", "n=%d", ++evaluated);
    log_error("loud", "n=%d", ++evaluated);
    capture_end(&capture);
    assert_string_equal(capture.text, "<3>event=loud n=1\n");
}

static void level_names_are_parsed(void **state)
{
    (void)state;
    enum log_level level;
    assert_true(log_level_parse(SLICE("debug"), &level) && level == LOG_LEVEL_DEBUG);
    assert_true(log_level_parse(SLICE("info"), &level) && level == LOG_LEVEL_INFO);
    assert_true(log_level_parse(SLICE("warn"), &level) && level == LOG_LEVEL_WARN);
    assert_true(log_level_parse(SLICE("error"), &level) && level == LOG_LEVEL_ERROR);
    assert_false(log_level_parse(SLICE("Info"), &level));
    assert_false(log_level_parse(SLICE(""), &level));
    assert_false(log_level_parse(SLICE("warning"), &level));
}

static void lines_beyond_the_burst_are_suppressed_and_counted(void **state)
{
    (void)state;
    struct capture capture;
    struct log_site site = {.event = "storm"};
    log_init(LOG_LEVEL_INFO, true);
    capture_start(&capture);
    for (int i = 0; i < LOG_SITE_BURST + 30; i++)
        log_write(&site, LOG_LEVEL_INFO, "n=%d", i);
    capture_end(&capture);
    assert_int_equal(line_count(capture.text), LOG_SITE_BURST);
    assert_null(strstr(capture.text, "suppressed"));

    /* Pretend that the period has passed. */
    atomic_fetch_sub(&site.period_start_ms, LOG_SITE_PERIOD_MS);
    capture_start(&capture);
    log_write(&site, LOG_LEVEL_INFO, "n=%d", 1);
    log_write(&site, LOG_LEVEL_INFO, "n=%d", 2);
    capture_end(&capture);
    assert_string_equal(capture.text, "<6>event=storm n=1 suppressed=30\n<6>event=storm n=2\n");
}

static void *write_many(void *site)
{
    for (int i = 0; i < 1000; i++)
        log_write(site, LOG_LEVEL_INFO, "n=%d", i);
    return NULL;
}

static void every_suppressed_line_is_counted_across_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct capture capture;
    struct log_site site = {.event = "race"};
    pthread_t threads[THREADS];
    log_init(LOG_LEVEL_INFO, true);
    capture_start(&capture);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &site), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    capture_end(&capture);
    unsigned written = line_count(capture.text);
    unsigned counted = 0;
    for (const char *at = capture.text; (at = strstr(at, "suppressed=")); at++)
        counted += (unsigned)atoi(at + strlen("suppressed="));
    assert_int_equal(written + counted + atomic_load(&site.suppressed), THREADS * 1000);
    assert_in_range(written, LOG_SITE_BURST, 2 * (LOG_SITE_BURST + THREADS));
}

static void errno_is_preserved(void **state)
{
    (void)state;
    log_init(LOG_LEVEL_INFO, true);
    int stderr_copy = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    errno = ENOENT;
    log_info("nowhere", "n=%d", 1);
    int errno_after = errno;
    dup2(stderr_copy, STDERR_FILENO);
    close(stderr_copy);
    assert_int_equal(errno_after, ENOENT);
}

static void quote_escapes_quotes_and_control_characters(void **state)
{
    (void)state;
    static const struct {
        struct slice value;
        const char *text;
    } cases[] = {
        {SLICE_NONE, "\"\""},
        {SLICE("anna"), "\"anna\""},
        {SLICE("two words=x"), "\"two words=x\""},
        {SLICE("a\" level=error"), "\"a\\\" level=error\""},
        {SLICE("a\\\" b"), "\"a\\\\\\\" b\""},
        {SLICE("a\nts=0"), "\"a\\x0ats=0\""},
        {SLICE("\0\x1b[2J\x7f\r"), "\"\\x00\\x1b[2J\\x7f\\x0d\""},
        {SLICE("J\xc3\xb6rg \xf0\x9f\x98\x80"), "\"J\xc3\xb6rg \xf0\x9f\x98\x80\""},
        {SLICE("\xff\xc3"), "\"\\xff\\xc3\""},
        {SLICE("\xc2\x9b\xc2\xa0"), "\"\\xc2\\x9b\xc2\xa0\""},
        {SLICE("\xe2\x80\xa8|\xe2\x80\xae|\xe2\x81\xa6"),
         "\"\\xe2\\x80\\xa8|\\xe2\\x80\\xae|\\xe2\\x81\\xa6\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(log_quote(cases[i].value), cases[i].text);
}

static void quote_cuts_between_characters(void **state)
{
    (void)state;
    char value[LOG_QUOTE_MAX + 1];
    memset(value, 'x', sizeof(value));
    assert_int_equal(strlen(log_quote((struct slice){value, LOG_QUOTE_MAX})), LOG_QUOTE_MAX + 2);
    const char *cut = log_quote((struct slice){value, LOG_QUOTE_MAX + 1});
    assert_int_equal(strlen(cut), LOG_QUOTE_MAX + 5);
    assert_string_equal(cut + LOG_QUOTE_MAX, "x...\"");

    memcpy(value + LOG_QUOTE_MAX - 1, "\xc3\xa9", 2);
    cut = log_quote((struct slice){value, sizeof(value)});
    assert_string_equal(cut + LOG_QUOTE_MAX - 1, "x...\"");
}

static void sentence_is_quoted_and_cut_later(void **state)
{
    (void)state;
    char value[LOG_SENTENCE_MAX + 1];
    memset(value, 'x', sizeof(value));
    memcpy(value, "a\n\"", 3);
    assert_int_equal(strlen(log_sentence((struct slice){value, LOG_QUOTE_MAX * 2})),
                     LOG_QUOTE_MAX * 2 + 2 + 4);
    const char *cut = log_sentence((struct slice){value, sizeof(value)});
    assert_memory_equal(cut, "\"a\\x0a\\\"x", 8);
    assert_string_equal(cut + strlen(cut) - 5, "x...\"");
    assert_int_equal(strlen(cut), LOG_SENTENCE_MAX + 2 + 4 + 3);
}

static void four_quotes_are_valid_at_a_time(void **state)
{
    (void)state;
    const char *quotes[LOG_QUOTE_RING];
    for (int i = 0; i < LOG_QUOTE_RING; i++)
        quotes[i] = log_quote((struct slice){&"abcd"[i], 1});
    for (int i = 0; i < LOG_QUOTE_RING; i++)
        assert_int_equal(quotes[i][1], 'a' + i);
}

/* Returns how many pairs (or lone keys) a logfmt reader sees in the line; 0 if it is malformed. */
static unsigned pair_count(const char *line)
{
    unsigned pairs = 0;
    while (*line && *line != '\n') {
        line += strcspn(line, "= \n");
        if (line[0] == '=' && line[1] == '"') {
            for (line += 2; *line && *line != '"'; line++)
                line += *line == '\\' && line[1];
            if (*line++ != '"')
                return 0;
        } else {
            line += strcspn(line, " \"\n");
        }
        pairs++;
        if (*line == ' ')
            line++;
        else if (*line != '\n')
            return 0;
    }
    return line[0] == '\n' && line[1] == '\0' ? pairs : 0;
}

static void fill_with_hostile_bytes(struct random *random, char *value, size_t len)
{
    static const char hostile[] = "\"\\\n\r= \x1b\x7f\xc2\x9b\xe2\x80\xa8 axn";
    for (size_t i = 0; i < len; i++)
        value[i] = hostile[random_below(random, sizeof(hostile))];
}

static void value_cannot_forge_a_pair_or_line(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 71);
    log_init(LOG_LEVEL_INFO, false);
    for (int round = 0; round < 2000; round++) {
        char value[100];
        size_t len = random_below(&random, sizeof(value) + 1);
        fill_with_hostile_bytes(&random, value, len);
        struct log_site site = {.event = "hostile"};
        struct capture capture;
        capture_start(&capture);
        log_write(&site, LOG_LEVEL_INFO, "a=1 user=%s b=2", log_quote((struct slice){value, len}));
        capture_end(&capture);
        assert_int_equal(pair_count(capture.text), 6);
        assert_true(utf8_valid(slice_of(capture.text)));
    }
}

/* A cut line stays well-formed and says that it was cut. */
static void long_line_is_cut_and_marked(void **state)
{
    (void)state;
    char filler[LOG_LINE_MAX];
    memset(filler, 'x', sizeof(filler));
    log_init(LOG_LEVEL_INFO, true);
    for (int width = LOG_LINE_MAX - 120; width < LOG_LINE_MAX; width++) {
        struct log_site site = {.event = "long", .suppressed = 4294967295U};
        struct capture capture;
        capture_start(&capture);
        log_write(&site, LOG_LEVEL_INFO, "a=%.*s user=%s c=3", width, filler,
                  log_quote(SLICE("\"quoted\" \\ \xc3\xa9\xc3\xa9\xc3\xa9 \n")));
        capture_end(&capture);
        assert_true(strlen(capture.text) <= LOG_LINE_MAX);
        assert_int_equal(line_count(capture.text), 1);
        assert_true(utf8_valid(slice_of(capture.text)));
        bool whole = strstr(capture.text, " c=3 ") != NULL;
        assert_int_equal(strstr(capture.text, " truncated=true ") == NULL, whole);
        assert_non_null(strstr(capture.text, " suppressed=4294967295\n"));
        assert_true(pair_count(capture.text) >= 4);
    }
}

static void raw_control_characters_are_never_written(void **state)
{
    (void)state;
    struct capture capture;
    log_init(LOG_LEVEL_INFO, true);
    capture_start(&capture);
    log_info("careless", "user=%s reason=%s", "a\n<3>event=forged\\", "\"\\\n\x1b\xff");
    capture_end(&capture);
    assert_string_equal(capture.text,
                        "<6>event=careless user=a?<3>event=forged\\ reason=\"\\???\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_has_time_level_event_and_pairs),
        cmocka_unit_test(journal_line_has_syslog_level_and_no_time),
        cmocka_unit_test(line_below_the_level_is_not_formatted),
        cmocka_unit_test(level_names_are_parsed),
        cmocka_unit_test(lines_beyond_the_burst_are_suppressed_and_counted),
        cmocka_unit_test(every_suppressed_line_is_counted_across_threads),
        cmocka_unit_test(errno_is_preserved),
        cmocka_unit_test(quote_escapes_quotes_and_control_characters),
        cmocka_unit_test(quote_cuts_between_characters),
        cmocka_unit_test(sentence_is_quoted_and_cut_later),
        cmocka_unit_test(four_quotes_are_valid_at_a_time),
        cmocka_unit_test(value_cannot_forge_a_pair_or_line),
        cmocka_unit_test(long_line_is_cut_and_marked),
        cmocka_unit_test(raw_control_characters_are_never_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
