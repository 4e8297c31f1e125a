/* The tests of the suite, in three files by subject. Their cmocka state is a `struct harness`. */
#ifndef ROLLCALL_TESTS_LEDGER_SUITE_TESTS_H
#define ROLLCALL_TESTS_LEDGER_SUITE_TESTS_H

#define LEDGER_SUITE_TESTS(X)                                                                      \
    X(settings_have_defaults_and_change_separately)                                                \
    X(profiles_show_settings_and_relations)                                                        \
    X(graph_lists_settings_contacts_blocks_and_chats)                                              \
    X(last_seen_and_version_never_decrease)                                                        \
    X(profiles_of_many_users_are_read_at_once)                                                     \
    X(relation_is_read_as_of_one_instant)                                                          \
    X(malformed_ids_are_refused)                                                                   \
    X(contact_request_is_accepted_once)                                                            \
    X(contact_request_is_declined_or_withdrawn)                                                    \
    X(crossing_contact_request_accepts_the_other)                                                  \
    X(contact_request_is_answered_only_by_its_owners)                                              \
    X(block_looks_like_no_answer_to_the_sender)                                                    \
    X(block_ends_contact_and_hides_contact_requests)                                               \
    X(hidden_contact_request_is_shown_when_repeated_after_unblocking)                              \
    X(contact_requests_are_paged)                                                                  \
    X(outgoing_contact_requests_are_bounded)                                                       \
    X(contacts_match_a_model_over_random_steps)                                                    \
    X(messages_of_a_user_become_tombstones)                                                        \
    X(many_messages_are_erased_in_slices)                                                          \
    X(erased_user_leaves_direct_chats)                                                             \
    X(chats_that_were_left_are_found_and_erased)                                                   \
    X(chat_of_a_user_who_came_back_is_not_former)                                                  \
    X(former_chats_are_paged)                                                                      \
    X(calls_and_last_seen_are_forgotten)                                                           \
    X(application_makes_and_ends_contacts)                                                         \
    X(application_blocks_for_a_user)                                                               \
    X(contact_of_the_application_settles_contact_requests)                                         \
    X(contacts_of_the_application_are_bounded)                                                     \
    X(chat_is_created_once)                                                                        \
    X(creator_repeats_a_creation_after_members_changed)                                            \
    X(chat_is_open_to_members_only)                                                                \
    X(block_between_members_prevents_a_chat)                                                       \
    X(chats_are_paged_by_activity)                                                                 \
    X(order_of_chats_matches_a_model)                                                              \
    X(forced_chats_displace_no_accepted_chat)                                                      \
    X(reserved_chat_ids_are_refused)                                                               \
    X(direct_chat_belongs_to_two_users)                                                            \
    X(admins_have_rights_in_groups)                                                                \
    X(longest_member_becomes_admin_when_the_last_leaves)                                           \
    X(only_contacts_add_who_asks_for_it)                                                           \
    X(read_marks_are_shown_as_the_reader_wants)                                                    \
    X(members_see_names_and_pictures)                                                              \
    X(group_of_many_members_is_like_a_small_one)                                                   \
    X(chat_members_are_bounded)                                                                    \
    X(call_is_kept_for_both_users)                                                                 \
    X(calls_are_bounded)                                                                           \
    X(unanswered_calls_of_one_caller_are_bounded)                                                  \
    X(messages_get_dense_sequences)                                                                \
    X(repeated_message_returns_the_first_send)                                                     \
    X(block_stops_messages_in_a_chat_of_two)                                                       \
    X(messages_are_read_in_both_directions)                                                        \
    X(cursors_determine_unread_counts)                                                             \
    X(own_messages_are_not_unread)                                                                 \
    X(members_version_grows_with_every_change)                                                     \
    X(outbox_holds_unpublished_messages_in_order)                                                  \
    X(outbox_of_many_chats_is_in_order)                                                            \
    X(outbox_is_skipped_by_clients_that_publish_by_other_means)                                    \
    X(dead_letters_can_be_replayed)                                                                \
    X(application_adds_members_and_sends_without_consent)                                          \
    X(deleted_message_leaves_a_tombstone)                                                          \
    X(keys_are_stored_used_and_removed)                                                            \
    X(revocations_are_listed_in_order_and_only_the_latest)                                         \
    X(revocation_never_moves_back)                                                                 \
    X(acts_are_events_in_the_queues_that_want_them)                                                \
    X(acts_without_effect_are_no_events)                                                           \
    X(acts_make_no_events_without_queues)                                                          \
    X(events_have_the_fields_of_their_pushes)                                                      \
    X(events_have_the_bodies_of_their_messages)                                                    \
    X(events_of_one_message_have_the_same_body)                                                    \
    X(events_lose_the_body_of_a_deleted_message)                                                   \
    X(events_lose_the_bodies_of_an_erased_user)                                                    \
    X(events_of_one_chat_are_in_order)                                                             \
    X(events_are_removed_one_by_one)                                                               \
    X(events_that_were_given_up_can_be_replayed)                                                   \
    X(dead_events_are_listed_in_pages)                                                             \
    X(event_queue_has_one_holder)                                                                  \
    X(every_request_is_answered_once)                                                              \
    X(sequences_are_dense_under_concurrency)                                                       \
    X(messages_of_one_sender_are_answered_in_order)                                                \
    X(late_answers_are_dropped)

#define LEDGER_SUITE_DECLARE(name) void ledger_suite_##name(void **state);
LEDGER_SUITE_TESTS(LEDGER_SUITE_DECLARE)
#undef LEDGER_SUITE_DECLARE

#define expect(answer, text) assert_string_equal(answer, text)

#endif
