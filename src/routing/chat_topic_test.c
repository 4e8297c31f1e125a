/* Names of the topics of a chat: written, parsed, and invalid ones. */
#include "routing/chat_topic.h"

#include "protocol/presence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void topic_names_parse_back_to_chat_and_topic(void **unused)
{
    (void)unused;
    static const char *const CHATS[] = {"a", "a:b", ":typing", ":presence", "chat:", "x:typing:y"};
    for (size_t i = 0; i < sizeof(CHATS) / sizeof(CHATS[0]); i++)
        for (int topic = CHAT_TOPIC_PRESENCE; topic <= CHAT_TOPIC_TYPING; topic++) {
            char name[ROUTER_TOPIC_BYTES_MAX];
            struct slice chat_id;
            struct slice made = chat_topic_name(name, slice_of(CHATS[i]), (enum chat_topic)topic);
            assert_int_equal(chat_topic_parse(made, &chat_id), topic);
            assert_true(slice_is(chat_id, CHATS[i]));
        }
}

static void longest_chat_id_fits_into_a_topic_name(void **unused)
{
    (void)unused;
    char name[ROUTER_TOPIC_BYTES_MAX], chat[CHAT_ID_BYTES_MAX];
    memset(chat, 'x', sizeof(chat));
    struct slice made =
        chat_topic_name(name, (struct slice){chat, sizeof(chat)}, CHAT_TOPIC_PRESENCE);
    assert_true(made.len <= sizeof(name));
}

static void names_of_other_topics_are_refused(void **unused)
{
    (void)unused;
    static const char *const NAMES[] = {
        "",        "chat:",      "chat::typing",     "chat:a",
        "chat:a:", "presence:a", "server:a:deliver", "a:typing",
    };
    struct slice chat_id;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        assert_int_equal(chat_topic_parse(slice_of(NAMES[i]), &chat_id), CHAT_TOPIC_NONE);
}

/* Another process may send any name; callers have buffers for the longest valid chat id only. */
static void a_chat_id_longer_than_the_maximum_is_refused(void **unused)
{
    (void)unused;
    char name[ROUTER_TOPIC_BYTES_MAX], chat[CHAT_ID_BYTES_MAX + 1];
    struct slice chat_id;
    memset(chat, 'x', sizeof(chat));
    struct slice longest = {chat, CHAT_ID_BYTES_MAX}, too_long = {chat, sizeof(chat)};
    assert_int_equal(chat_topic_parse(chat_topic_name(name, longest, CHAT_TOPIC_TYPING), &chat_id),
                     CHAT_TOPIC_TYPING);
    assert_int_equal(chat_topic_parse(chat_topic_name(name, too_long, CHAT_TOPIC_TYPING), &chat_id),
                     CHAT_TOPIC_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_names_parse_back_to_chat_and_topic),
        cmocka_unit_test(longest_chat_id_fits_into_a_topic_name),
        cmocka_unit_test(names_of_other_topics_are_refused),
        cmocka_unit_test(a_chat_id_longer_than_the_maximum_is_refused),
    };
    return cmocka_run_group_tests_name("chat_topic", tests, NULL, NULL);
}
