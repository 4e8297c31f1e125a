#include "net/mailbox.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct test_mail {
    struct mail mail;
    unsigned sender;
    unsigned number;
};

enum { SENDERS = 4 };

struct fixture {
    struct loop loop;
    struct mailbox mailbox;
    size_t opened;
    unsigned next[SENDERS]; /* the next number expected of each */
};

static void on_test_mail_opened(struct mail *mail, void *owner)
{
    struct test_mail *test_mail = CONTAINER_OF(mail, struct test_mail, mail);
    struct fixture *fixture = owner;
    assert_int_equal(test_mail->number, fixture->next[test_mail->sender]);
    fixture->next[test_mail->sender]++;
    fixture->opened++;
    free(test_mail);
}

static bool post(struct fixture *fixture, unsigned sender, unsigned number)
{
    struct test_mail *test_mail = malloc(sizeof(*test_mail));
    *test_mail =
        (struct test_mail){.mail.on_open = on_test_mail_opened, .sender = sender, .number = number};
    if (mailbox_post(&fixture->mailbox, &test_mail->mail))
        return true;
    free(test_mail);
    return false;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    return loop_init(&fixture->loop) &&
                   mailbox_init(&fixture->mailbox, &fixture->loop, MAILBOX_MAIL_MAX, fixture)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    mailbox_free(&fixture->mailbox);
    loop_free(&fixture->loop);
    free(fixture);
    return 0;
}

static void mail_wakes_the_loop_and_arrives_in_order(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < 10; i++)
        assert_true(post(fixture, 0, i));
    assert_int_equal(fixture->opened, 0);
    loop_turn(&fixture->loop, -1);
    assert_int_equal(fixture->opened, 10);
    loop_turn(&fixture->loop, 0);
    assert_true(post(fixture, 0, 10));
    loop_turn(&fixture->loop, -1);
    assert_int_equal(fixture->opened, 11);
}

static void opened_mail_per_turn_is_bounded(void **state)
{
    enum { MAIL = MAILBOX_OPENED_PER_TURN * 2 + 5 };
    struct fixture *fixture = *state;
    assert_true(mailbox_is_empty(&fixture->mailbox));
    for (unsigned i = 0; i < MAIL; i++)
        assert_true(post(fixture, 0, i));
    size_t before = 0;
    for (int turn = 0; fixture->opened < MAIL && turn < 10; turn++) {
        loop_turn(&fixture->loop, -1); /* does not wait: there is more */
        assert_true(fixture->opened > before);
        assert_true(fixture->opened - before <= 2 * MAILBOX_OPENED_PER_TURN);
        assert_int_equal(mailbox_is_empty(&fixture->mailbox), fixture->opened == MAIL);
        before = fixture->opened;
    }
    assert_int_equal(fixture->opened, MAIL);
}

static void full_mailbox_refuses_mail(void **state)
{
    struct fixture *fixture = *state;
    unsigned number = 0;
    while (post(fixture, 0, number))
        number++;
    assert_int_equal(number, MAILBOX_MAIL_MAX);
    for (int turn = 0; fixture->opened < MAILBOX_MAIL_MAX && turn < 100; turn++)
        loop_turn(&fixture->loop, -1);
    assert_int_equal(fixture->opened, MAILBOX_MAIL_MAX);
    assert_true(post(fixture, 0, number));
    loop_turn(&fixture->loop, -1);
    assert_int_equal(fixture->opened, MAILBOX_MAIL_MAX + 1);
}

/* A sender that is faster than the loop must not fill the memory. */
static void waiting_mail_is_bounded_under_load(void **state)
{
    struct fixture *fixture = *state;
    unsigned posted = 0;
    for (int turn = 0; turn < 60; turn++) {
        while (post(fixture, 0, posted))
            posted++;
        loop_turn(&fixture->loop, 0);
        assert_true(posted - fixture->opened <= 2 * MAILBOX_MAIL_MAX);
    }
}

static void unbounded_mailbox_never_refuses(void **state)
{
    struct fixture *fixture = *state;
    mailbox_free(&fixture->mailbox);
    assert_true(mailbox_init(&fixture->mailbox, &fixture->loop, MAILBOX_UNBOUNDED, fixture));
    for (unsigned i = 0; i < 2 * MAILBOX_MAIL_MAX; i++)
        assert_true(post(fixture, 0, i));
    for (int turn = 0; fixture->opened < 2 * MAILBOX_MAIL_MAX && turn < 100; turn++)
        loop_turn(&fixture->loop, -1);
    assert_int_equal(fixture->opened, 2 * MAILBOX_MAIL_MAX);
}

static void freeing_opens_remaining_mail(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < MAILBOX_OPENED_PER_TURN * 3; i++)
        assert_true(post(fixture, 0, i));
    loop_turn(&fixture->loop, 0);
    for (unsigned i = 0; i < 10; i++) /* behind mail that was taken out and not opened yet */
        assert_true(post(fixture, 0, MAILBOX_OPENED_PER_TURN * 3 + i));
    mailbox_free(&fixture->mailbox);
    assert_int_equal(fixture->opened, MAILBOX_OPENED_PER_TURN * 3 + 10);
    assert_true(mailbox_init(&fixture->mailbox, &fixture->loop, MAILBOX_MAIL_MAX,
                             fixture)); /* for tear_down */
}

/* ---- threads ---- */

enum { MAIL_PER_SENDER = 20000 };

struct sender {
    pthread_t thread;
    struct fixture *fixture;
    unsigned index;
};

static void *run_sender(void *arg)
{
    struct sender *sender = arg;
    for (unsigned i = 0; i < MAIL_PER_SENDER;)
        i += post(sender->fixture, sender->index, i);
    return NULL;
}

static void threads_post_in_order_without_loss(void **state)
{
    struct fixture *fixture = *state;
    struct sender senders[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.fixture = fixture, .index = i};
        pthread_create(&senders[i].thread, NULL, run_sender, &senders[i]);
    }
    while (fixture->opened < SENDERS * MAIL_PER_SENDER)
        loop_turn(&fixture->loop, -1); /* a lost wake-up would hang here */
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(fixture->next[i], MAIL_PER_SENDER);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(mail_wakes_the_loop_and_arrives_in_order),
        with_fixture(opened_mail_per_turn_is_bounded),
        with_fixture(full_mailbox_refuses_mail),
        with_fixture(waiting_mail_is_bounded_under_load),
        with_fixture(unbounded_mailbox_never_refuses),
        with_fixture(freeing_opens_remaining_mail),
        with_fixture(threads_post_in_order_without_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
