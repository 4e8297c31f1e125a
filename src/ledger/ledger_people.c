/* The operations on users, contacts and blocks: each copies its arguments into a request. */
#include "ledger/ledger_request.h"

/* ---- users ---- */

void ledger_settings_get(struct ledger_client *client, struct slice user, ledger_settings_done done,
                         void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_SETTINGS_GET, arg);
    request->done.settings = done;
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

static struct slice copy_appearance_text(struct ledger_request *request, const struct slice *text,
                                         size_t bytes_max)
{
    if (text && text->len > bytes_max)
        ledger_request_refuse(request, LEDGER_INVALID);
    return text && text->len <= bytes_max ? ledger_request_copy(request, *text) : SLICE_NONE;
}

void ledger_settings_put(struct ledger_client *client, struct slice user,
                         const struct ledger_settings_patch *patch, ledger_settings_done done,
                         void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_SETTINGS_PUT, arg);
    struct ledger_request_input *input = &request->input;
    request->done.settings = done;
    input->user = ledger_request_id(request, user);
    input->set_presence = patch->presence != NULL;
    input->set_last_seen = patch->last_seen != NULL;
    input->set_group_adds = patch->group_adds != NULL;
    input->set_hides_reads = patch->hides_reads != NULL;
    input->set_display_name = patch->display_name != NULL;
    input->set_avatar_url = patch->avatar_url != NULL;
    if (patch->presence)
        input->settings.presence = *patch->presence;
    if (patch->last_seen)
        input->settings.last_seen = *patch->last_seen;
    if (patch->group_adds)
        input->settings.group_adds = *patch->group_adds;
    if (patch->hides_reads)
        input->settings.hides_reads = *patch->hides_reads;
    input->appearance.display_name =
        copy_appearance_text(request, patch->display_name, LEDGER_DISPLAY_NAME_BYTES_MAX);
    input->appearance.avatar_url =
        copy_appearance_text(request, patch->avatar_url, LEDGER_AVATAR_URL_BYTES_MAX);
    ledger_request_submit(request);
}

void ledger_profiles(struct ledger_client *client, struct slice viewer, const struct slice *targets,
                     size_t count, ledger_profiles_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_PROFILES, arg);
    request->done.profiles = done;
    request->input.user = ledger_request_optional_id(request, viewer);
    request->input.ids = ledger_request_ids(request, targets, count, LEDGER_PROFILES_MAX);
    request->input.id_count = count;
    ledger_request_submit(request);
}

void ledger_appearances(struct ledger_client *client, const struct slice *users, size_t count,
                        ledger_appearances_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_APPEARANCES, arg);
    request->done.appearances = done;
    request->input.ids = ledger_request_ids(request, users, count, LEDGER_APPEARANCES_MAX);
    request->input.id_count = count;
    ledger_request_submit(request);
}

void ledger_last_seen_put(struct ledger_client *client, const struct ledger_last_seen *entries,
                          size_t count, ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_LAST_SEEN_PUT, arg);
    request->done.change = done;
    struct ledger_last_seen *copies = NULL;
    if (count <= LEDGER_LAST_SEEN_BATCH_MAX)
        copies = ledger_request_alloc(request, count * sizeof(*copies));
    else
        ledger_request_refuse(request, LEDGER_LIMIT);
    for (size_t i = 0; copies && i < count; i++) {
        copies[i] = entries[i];
        copies[i].user = ledger_request_id(request, entries[i].user);
    }
    request->input.seen = copies;
    request->input.seen_count = count;
    ledger_request_submit(request);
}

/* ---- contacts ---- */

void ledger_contact_request_create(struct ledger_client *client, struct slice id, struct slice from,
                                   struct slice to, ledger_contact_done done, void *arg)
{
    struct ledger_request *request =
        ledger_request_make(client, LEDGER_CONTACT_REQUEST_CREATE, arg);
    request->done.contact = done;
    request->input.id = ledger_request_id(request, id);
    request->input.user = ledger_request_id(request, from);
    request->input.other = ledger_request_id(request, to);
    if (slice_equal(from, to))
        ledger_request_refuse(request, LEDGER_INVALID);
    ledger_request_submit(request);
}

static void submit_contact_answer(struct ledger_client *client, enum ledger_operation operation,
                                  struct slice user, struct slice id, ledger_contact_done done,
                                  void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->done.contact = done;
    request->input.user = ledger_request_id(request, user);
    request->input.id = ledger_request_id(request, id);
    ledger_request_submit(request);
}

void ledger_contact_request_accept(struct ledger_client *client, struct slice user, struct slice id,
                                   ledger_contact_done done, void *arg)
{
    submit_contact_answer(client, LEDGER_CONTACT_REQUEST_ACCEPT, user, id, done, arg);
}

void ledger_contact_request_decline(struct ledger_client *client, struct slice user,
                                    struct slice id, ledger_contact_done done, void *arg)
{
    submit_contact_answer(client, LEDGER_CONTACT_REQUEST_DECLINE, user, id, done, arg);
}

void ledger_contact_request_withdraw(struct ledger_client *client, struct slice user,
                                     struct slice id, ledger_contact_done done, void *arg)
{
    submit_contact_answer(client, LEDGER_CONTACT_REQUEST_WITHDRAW, user, id, done, arg);
}

void ledger_contact_requests_list(struct ledger_client *client, struct slice user,
                                  enum ledger_direction direction, struct slice after,
                                  uint32_t limit, ledger_contact_requests_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CONTACT_REQUESTS_LIST, arg);
    request->done.contact_requests = done;
    request->input.user = ledger_request_id(request, user);
    request->input.incoming = direction == LEDGER_INCOMING;
    request->input.after = ledger_request_optional_id(request, after);
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

void ledger_graph(struct ledger_client *client, struct slice user, uint32_t chats_max,
                  ledger_graph_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_GRAPH, arg);
    request->done.graph = done;
    request->input.user = ledger_request_id(request, user);
    request->input.limit = ledger_request_limit(chats_max);
    ledger_request_submit(request);
}

void ledger_contacts_list(struct ledger_client *client, struct slice user, ledger_ids_done done,
                          void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_CONTACTS_LIST, arg);
    request->done.ids = done;
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

void ledger_blocks_list(struct ledger_client *client, struct slice user, ledger_ids_done done,
                        void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_BLOCKS_LIST, arg);
    request->done.ids = done;
    request->input.user = ledger_request_id(request, user);
    ledger_request_submit(request);
}

static struct ledger_request *make_pair_request(struct ledger_client *client,
                                                enum ledger_operation operation, struct slice user,
                                                struct slice other, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->input.user = ledger_request_id(request, user);
    request->input.other = ledger_request_id(request, other);
    if (slice_equal(user, other))
        ledger_request_refuse(request, LEDGER_INVALID);
    return request;
}

void ledger_contact_remove(struct ledger_client *client, struct slice user, struct slice other,
                           ledger_change_done done, void *arg)
{
    struct ledger_request *request =
        make_pair_request(client, LEDGER_CONTACT_REMOVE, user, other, arg);
    request->done.change = done;
    ledger_request_submit(request);
}

void ledger_block_put(struct ledger_client *client, struct slice user, struct slice other,
                      ledger_block_done done, void *arg)
{
    struct ledger_request *request = make_pair_request(client, LEDGER_BLOCK_PUT, user, other, arg);
    request->done.block = done;
    ledger_request_submit(request);
}

void ledger_block_delete(struct ledger_client *client, struct slice user, struct slice other,
                         ledger_change_done done, void *arg)
{
    struct ledger_request *request =
        make_pair_request(client, LEDGER_BLOCK_DELETE, user, other, arg);
    request->done.change = done;
    ledger_request_submit(request);
}
