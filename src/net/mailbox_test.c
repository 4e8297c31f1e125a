#include "net/mailbox.h"

#include "base/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct letter {
    struct mail mail;
    unsigned sender;
    unsigned number;
};

enum { SENDERS = 4 };

struct office {
    struct loop loop;
    struct mailbox mailbox;
    size_t opened;
    unsigned next[SENDERS]; /* the number that must come next from each */
};

static void open_letter(struct mail *mail, void *owner)
{
    struct letter *letter = CONTAINER_OF(mail, struct letter, mail);
    struct office *office = owner;
    assert_int_equal(letter->number, office->next[letter->sender]);
    office->next[letter->sender]++;
    office->opened++;
    free(letter);
}

static bool post(struct office *office, unsigned sender, unsigned number)
{
    struct letter *letter = malloc(sizeof(*letter));
    *letter = (struct letter){.mail.on_open = open_letter, .sender = sender, .number = number};
    if (mailbox_post(&office->mailbox, &letter->mail))
        return true;
    free(letter);
    return false;
}

static int set_up(void **state)
{
    struct office *office = calloc(1, sizeof(*office));
    *state = office;
    return loop_init(&office->loop) &&
                   mailbox_init(&office->mailbox, &office->loop, MAILBOX_MAIL_MAX, office)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct office *office = *state;
    mailbox_free(&office->mailbox);
    loop_free(&office->loop);
    free(office);
    return 0;
}

static void mail_wakes_the_loop_and_comes_in_order(void **state)
{
    struct office *office = *state;
    for (unsigned i = 0; i < 10; i++)
        assert_true(post(office, 0, i));
    assert_int_equal(office->opened, 0);
    loop_turn(&office->loop, -1);
    assert_int_equal(office->opened, 10);
    loop_turn(&office->loop, 0);
    assert_true(post(office, 0, 10));
    loop_turn(&office->loop, -1);
    assert_int_equal(office->opened, 11);
}

static void a_turn_opens_so_many(void **state)
{
    enum { MAIL = MAILBOX_OPENED_PER_TURN * 2 + 5 };
    struct office *office = *state;
    assert_true(mailbox_is_empty(&office->mailbox));
    for (unsigned i = 0; i < MAIL; i++)
        assert_true(post(office, 0, i));
    size_t before = 0;
    for (int turn = 0; office->opened < MAIL && turn < 10; turn++) {
        loop_turn(&office->loop, -1); /* does not wait: there is more */
        assert_true(office->opened > before);
        assert_true(office->opened - before <= 2 * MAILBOX_OPENED_PER_TURN);
        assert_int_equal(mailbox_is_empty(&office->mailbox), office->opened == MAIL);
        before = office->opened;
    }
    assert_int_equal(office->opened, MAIL);
}

static void a_full_box_says_no(void **state)
{
    struct office *office = *state;
    unsigned number = 0;
    while (post(office, 0, number))
        number++;
    assert_int_equal(number, MAILBOX_MAIL_MAX);
    for (int turn = 0; office->opened < MAILBOX_MAIL_MAX && turn < 100; turn++)
        loop_turn(&office->loop, -1);
    assert_int_equal(office->opened, MAILBOX_MAIL_MAX);
    assert_true(post(office, 0, number));
    loop_turn(&office->loop, -1);
    assert_int_equal(office->opened, MAILBOX_MAIL_MAX + 1);
}

/* A sender that is faster than the owner is told no, and does not fill the memory. */
static void a_flood_is_bounded(void **state)
{
    struct office *office = *state;
    unsigned posted = 0;
    for (int turn = 0; turn < 60; turn++) {
        while (post(office, 0, posted))
            posted++;
        loop_turn(&office->loop, 0);
        assert_true(posted - office->opened <= 2 * MAILBOX_MAIL_MAX);
    }
}

static void an_unbounded_box_never_refuses(void **state)
{
    struct office *office = *state;
    mailbox_free(&office->mailbox);
    assert_true(mailbox_init(&office->mailbox, &office->loop, MAILBOX_UNBOUNDED, office));
    for (unsigned i = 0; i < 2 * MAILBOX_MAIL_MAX; i++)
        assert_true(post(office, 0, i));
    for (int turn = 0; office->opened < 2 * MAILBOX_MAIL_MAX && turn < 100; turn++)
        loop_turn(&office->loop, -1);
    assert_int_equal(office->opened, 2 * MAILBOX_MAIL_MAX);
}

static void what_is_left_is_opened_at_the_end(void **state)
{
    struct office *office = *state;
    for (unsigned i = 0; i < MAILBOX_OPENED_PER_TURN * 3; i++)
        assert_true(post(office, 0, i));
    loop_turn(&office->loop, 0);
    for (unsigned i = 0; i < 10; i++) /* behind what was taken out and not opened yet */
        assert_true(post(office, 0, MAILBOX_OPENED_PER_TURN * 3 + i));
    mailbox_free(&office->mailbox);
    assert_int_equal(office->opened, MAILBOX_OPENED_PER_TURN * 3 + 10);
    assert_true(mailbox_init(&office->mailbox, &office->loop, MAILBOX_MAIL_MAX,
                             office)); /* for tear_down */
}

/* ---- threads ---- */

enum { LETTERS = 20000 };

struct sender {
    pthread_t thread;
    struct office *office;
    unsigned index;
};

static void *send_letters(void *arg)
{
    struct sender *sender = arg;
    for (unsigned i = 0; i < LETTERS;)
        i += post(sender->office, sender->index, i);
    return NULL;
}

static void many_threads_post(void **state)
{
    struct office *office = *state;
    struct sender senders[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.office = office, .index = i};
        pthread_create(&senders[i].thread, NULL, send_letters, &senders[i]);
    }
    while (office->opened < SENDERS * LETTERS)
        loop_turn(&office->loop, -1); /* a lost wake-up would hang here */
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(office->next[i], LETTERS);
}

#define with_office(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_office(mail_wakes_the_loop_and_comes_in_order),
        with_office(a_turn_opens_so_many),
        with_office(a_full_box_says_no),
        with_office(a_flood_is_bounded),
        with_office(an_unbounded_box_never_refuses),
        with_office(what_is_left_is_opened_at_the_end),
        with_office(many_threads_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
