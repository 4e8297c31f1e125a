/* The suite's tests, in three files by subject. Each gets a `struct harness` as its cmocka state. */
#ifndef ROLLCALL_TESTS_LEDGER_SUITE_TESTS_H
#define ROLLCALL_TESTS_LEDGER_SUITE_TESTS_H

#define LEDGER_SUITE_TESTS(X)                                                                      \
    X(settings_have_defaults_and_change_apart)                                                     \
    X(profiles_show_settings_and_relations)                                                        \
    X(graph_is_all_that_is_around_a_user)                                                          \
    X(last_seen_never_goes_back)                                                                   \
    X(malformed_ids_are_refused)                                                                   \
    X(request_is_accepted_once)                                                                    \
    X(request_is_declined_or_withdrawn)                                                            \
    X(crossing_request_accepts)                                                                    \
    X(requests_are_settled_only_by_their_owners)                                                   \
    X(block_cannot_be_told_from_silence)                                                           \
    X(block_ends_everything_between_two)                                                           \
    X(request_comes_to_light_after_unblocking)                                                     \
    X(requests_are_paged)                                                                          \
    X(outgoing_requests_are_bounded)                                                               \
    X(contacts_follow_a_model)                                                                     \
    X(chat_is_made_once)                                                                           \
    X(chat_is_for_members)                                                                         \
    X(chat_needs_peace_among_its_members)                                                          \
    X(chats_are_paged)                                                                             \
    X(chat_members_are_bounded)                                                                    \
    X(calls_are_kept_for_both)                                                                     \
    X(calls_are_bounded)                                                                           \
    X(messages_are_numbered_densely)                                                               \
    X(message_sent_again_is_the_same)                                                              \
    X(a_block_silences_a_chat_of_two)                                                              \
    X(messages_are_read_both_ways)                                                                 \
    X(cursors_make_unread_counts)                                                                  \
    X(members_have_a_version)                                                                      \
    X(outbox_keeps_what_is_unpublished)                                                            \
    X(dead_letters_can_be_replayed)                                                                \
    X(every_request_is_answered_once)                                                              \
    X(numbers_are_dense_under_concurrency)                                                         \
    X(late_answers_are_dropped)

#define LEDGER_SUITE_DECLARE(name) void ledger_suite_##name(void **state);
LEDGER_SUITE_TESTS(LEDGER_SUITE_DECLARE)
#undef LEDGER_SUITE_DECLARE

#define expect(answer, text) assert_string_equal(answer, text)

#endif
