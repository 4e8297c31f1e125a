#include "app/control/control_letters.h"

#include "base/buffer.h"
#include "ledger/ledger_messages.h"
#include "log/log.h"
#include "text/time_text.h"

#include <stdlib.h>

/* A call while the ledger works. */
struct letters_call {
    control_done done;
    void *arg;
    struct ledger_client *ledger;
    bool replays;
    size_t pending; /* operations, and the function that starts them */
    size_t replayed;
    enum ledger_status failure; /* the last one; OK: none */
    struct buffer output;
};

static void end_letters_operation(struct letters_call *call)
{
    if (--call->pending)
        return;
    const char *error = call->failure == LEDGER_OK          ? NULL
                        : call->failure == LEDGER_NOT_FOUND ? "there is no such dead letter"
                                                            : ledger_status_name(call->failure);
    if (call->replays)
        buffer_printf(&call->output, "%zu put back; the server delivers them\n", call->replayed);
    if (call->output.failed)
        error = "out of memory";
    call->done(call->arg, error != NULL, buffer_slice(&call->output),
               error ? slice_of(error) : SLICE_NONE);
    buffer_free(&call->output);
    free(call);
}

/* ---- replaying ---- */

static void on_control_letter_replayed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct letters_call *call = arg;
    if (outcome->status == LEDGER_OK)
        call->replayed++;
    else
        call->failure = outcome->status;
    end_letters_operation(call);
}

static void replay_letter(struct letters_call *call, struct slice chat, uint64_t sequence)
{
    call->pending++;
    ledger_dead_letter_replay(call->ledger, chat, sequence, on_control_letter_replayed, call);
}

bool control_letters_parse(struct slice id, struct slice *chat, uint64_t *sequence)
{
    size_t colon = id.len;
    uint64_t number = 0;
    while (colon > 0 && id.data[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon == id.len || id.len - colon > 18)
        return false;
    for (size_t i = colon; i < id.len; i++) {
        if (id.data[i] < '0' || id.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(id.data[i] - '0');
    }
    *chat = slice_first(id, colon - 1);
    *sequence = number;
    return number > 0;
}

/* ---- listing ---- */

static void write_letter(struct buffer *out, const struct ledger_dead_letter *letter)
{
    char time[TIME_TEXT_LEN];
    time_text_write(time, letter->created_at_ms);
    buffer_printf(out, "%.*s:%llu\t%.*s\t%.*s\n", SLICE_FORMAT(letter->chat),
                  (unsigned long long)letter->sequence, (int)sizeof(time), time,
                  SLICE_FORMAT(letter->reason));
}

static void on_control_letters_listed(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    struct letters_call *call = arg;
    if (outcome->status != LEDGER_OK)
        call->failure = outcome->status;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_dead_letter *letter = &outcome->letters[i];
        if (call->replays)
            replay_letter(call, letter->chat, letter->sequence);
        else
            write_letter(&call->output, letter);
    }
    end_letters_operation(call);
}

/* ---- the command ---- */

static bool are_letters_arguments(const struct control_call *call, bool replays)
{
    struct slice chat;
    uint64_t sequence;
    if (!replays)
        return call->count <= 2 && (call->count < 2 || slice_is(call->arguments[1], "list"));
    for (size_t i = 2; i < call->count; i++)
        if (!(call->count == 3 && slice_is(call->arguments[i], "all")) &&
            !control_letters_parse(call->arguments[i], &chat, &sequence))
            return false;
    return true;
}

void control_letters_run(const struct control_call *call)
{
    bool replays = call->count > 1 && slice_is(call->arguments[1], "replay");
    bool all = call->count == 2 || slice_is(call->arguments[call->count - 1], "all");
    struct letters_call *made = NULL;
    if (!are_letters_arguments(call, replays)) {
        control_call_fail(call, "wrong arguments");
        return;
    }
    if (!(made = calloc(1, sizeof(*made)))) {
        control_call_fail(call, "out of memory");
        return;
    }
    *made = (struct letters_call){.done = call->done,
                                  .arg = call->arg,
                                  .ledger = call->ledger,
                                  .replays = replays,
                                  .pending = 1};
    if (replays)
        log_info("dead_letters_replayed", "ids=%zu", all ? 0 : call->count - 2);
    if (!replays || all) {
        ledger_dead_letters_list(call->ledger, 0, on_control_letters_listed, made);
        return;
    }
    for (size_t i = 2; i < call->count; i++) {
        struct slice chat;
        uint64_t sequence;
        if (control_letters_parse(call->arguments[i], &chat, &sequence))
            replay_letter(made, chat, sequence);
    }
    end_letters_operation(made);
}
