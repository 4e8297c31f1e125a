/* The users and chats of an import: one operation of the ledger each. */
#include "api/chat_events.h"
#include "api/service/service_import.h"
#include "presence/visibility/visibility_change.h"

#include <stdlib.h>

static void end_single(struct import_single *single)
{
    struct import *import = single->import;
    import->singles--;
    free(single);
    service_import_advance(import);
}

static void end_single_with_error(struct import_single *single, const char *message)
{
    import_report_error(&single->import->report, single->line, message);
    end_single(single);
}

static void note_single_done(struct import_single *single)
{
    single->import->failing_since_ms = 0;
    single->import->report.counts[single->kind]++;
    metrics_count(single->import->sessions->metrics, METRIC_IMPORT_LINES);
}

static void retry_single(struct import_single *single)
{
    struct import *import = single->import;
    list_append(&import->retries, &single->of_import);
    service_import_failed(import);
    service_import_advance(import);
}

/* ---- users ---- */

static void on_imported_user_visible(void *arg)
{
    end_single(arg);
}

static void on_imported_user_stored(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct import_single *single = arg;
    struct fields_scratch *scratch = &single->import->sessions->scratch;
    struct import_user user;
    if (service_import_is_retried(outcome->status)) {
        retry_single(single);
        return;
    }
    if (outcome->status != LEDGER_OK) {
        end_single_with_error(single, ledger_status_name(outcome->status));
        return;
    }
    note_single_done(single);
    memcpy(single->bytes + single->len, single->bytes, single->len);
    struct slice object = {single->bytes + single->len, single->len};
    bool is_changed = outcome->settings.presence != outcome->previous.presence ||
                      outcome->settings.last_seen != outcome->previous.last_seen;
    if (is_changed && !import_line_read_user(object, scratch, &user))
        visibility_change_of_settings(single->import->sessions->presence, user.user_id,
                                      &outcome->previous, &outcome->settings,
                                      on_imported_user_visible, single);
    else
        end_single(single);
}

static const char *start_user(struct import_single *single, struct slice object)
{
    struct session_context *sessions = single->import->sessions;
    struct import_user user;
    const char *problem = import_line_read_user(object, &sessions->scratch, &user);
    if (!problem)
        ledger_settings_put(sessions->ledger, user.user_id, &user.patch, on_imported_user_stored,
                            single);
    return problem;
}

/* ---- chats ---- */

static const char *chat_problem(enum ledger_status status)
{
    switch (status) {
    case LEDGER_CONFLICT:
        return "this chat_id is in use for another chat";
    case LEDGER_INVALID:
        return "a chat_id does not contain ':' and does not begin with 'direct'";
    case LEDGER_FORBIDDEN:
        return "a member has blocked another, or does not want to be added";
    default:
        return ledger_status_name(status);
    }
}

static void on_imported_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct import_single *single = arg;
    if (service_import_is_retried(outcome->status)) {
        retry_single(single);
        return;
    }
    if (outcome->status != LEDGER_OK) {
        end_single_with_error(single, chat_problem(outcome->status));
        return;
    }
    note_single_done(single);
    chat_events_created(single->import->sessions, &outcome->chat, outcome->created);
    end_single(single);
}

/* The first member is the chat's creator. */
static const char *start_chat(struct import_single *single, struct slice object)
{
    struct session_context *sessions = single->import->sessions;
    struct import_chat chat;
    const char *problem = import_line_read_chat(object, &sessions->scratch, &chat);
    if (!problem)
        ledger_chat_make(sessions->ledger, chat.chat_id, chat.members[0], chat.members + 1,
                         chat.member_count - 1, true, on_imported_chat_created, single);
    free(chat.members);
    return problem;
}

/* ---- both ---- */

/* Reading changes the bytes, so a copy is read. Returns what is wrong, or NULL when it is under way. */
static const char *start_single(struct import_single *single)
{
    struct slice object = {single->bytes + single->len, single->len};
    memcpy(single->bytes + single->len, single->bytes, single->len);
    return single->kind == IMPORT_USER ? start_user(single, object) : start_chat(single, object);
}

void service_import_single(struct import *import, const struct import_line *line)
{
    struct import_single *single = malloc(sizeof(*single) + 2 * line->object.len);
    if (!single) {
        import_report_error(&import->report, import->lines.line, "out of memory");
        return;
    }
    *single = (struct import_single){
        .import = import, .kind = line->kind, .line = import->lines.line, .len = line->object.len};
    list_init(&single->of_import);
    memcpy(single->bytes, line->object.data, line->object.len);
    import->singles++;
    const char *problem = start_single(single);
    if (!problem)
        return;
    import->singles--;
    import_report_error(&import->report, single->line, problem);
    free(single);
}

void service_import_retry_singles(struct import *import)
{
    struct list waiting;
    list_init(&waiting);
    while (!list_empty(&import->retries)) {
        struct list *first = import->retries.next;
        list_remove(first);
        list_append(&waiting, first);
    }
    while (!list_empty(&waiting)) {
        struct import_single *single = CONTAINER_OF(waiting.next, struct import_single, of_import);
        list_remove(&single->of_import);
        start_single(single); /* it was right the first time */
    }
}

void service_import_drop_singles(struct import *import)
{
    while (!list_empty(&import->retries)) {
        struct import_single *single =
            CONTAINER_OF(import->retries.next, struct import_single, of_import);
        list_remove(&single->of_import);
        import->singles--;
        free(single);
    }
}
