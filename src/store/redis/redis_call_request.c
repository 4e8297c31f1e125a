/* Requests and declarations: redis_call.h says why it goes this way. */
#include "base/container.h"
#include "store/redis/redis_call_internal.h"
#include "store/redis/redis_store.h"

enum { CALLER, CALLEE };

static void prepare(struct call_errand *errand);
static void take_claims(struct call_errand *errand);

static struct slice user_of(const struct call_errand *errand, size_t side)
{
    return side == CALLER ? errand->user : errand->callee;
}

/* ---- refusals ---- */

static void let_go(void *arg, const struct resp_value *reply)
{
    (void)reply;
    call_port_let_go(arg);
}

/* What was prepared and claimed is given back, as far as Redis can be reached; else it dies by its time. */
static void undo(struct call_errand *errand)
{
    struct call_port *port = errand->port;
    if (!errand->prepared || port->is_freed)
        return;
    call_port_hold(port);
    call_run(port, "abandon", errand->id, REDIS_ARGS(call_claim_key(&errand->claim)), let_go, port);
    for (size_t i = 0; i < errand->side_count; i++) {
        call_port_hold(port);
        call_run_claim(port, user_of(errand, i),
                       REDIS_ARGS(SLICE("release"), call_claim_text(&errand->claim)), let_go, port);
    }
}

static void refuse(struct call_errand *errand, enum call_result result, const struct call *call)
{
    undo(errand);
    call_errand_end(errand, result, call);
}

/* ---- the caller is in a call already ---- */

static bool is_repeated(const struct call_errand *errand, const struct call *call)
{
    return call->state == CALL_RINGING && slice_equal(call->id, errand->id) &&
           slice_equal(call->caller.user_id, errand->user) &&
           slice_equal(call->caller.device_id, errand->device) &&
           slice_equal(call->callee.user_id, errand->callee);
}

static bool crosses(const struct call_errand *errand, const struct call *call)
{
    return errand->callee.data && call->state == CALL_RINGING &&
           slice_equal(call->callee.user_id, errand->user) &&
           slice_equal(call->caller.user_id, errand->callee);
}

/* The call that rang the other way may be over by now; then nothing was learned. */
static void crossed(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    struct call call;
    bool answered = slice_is(call_reply_result(reply), "done") && call_reply_show(reply, &call);
    if (answered)
        call_errand_end(errand, CALL_GLARE, &call);
    else
        call_errand_end(errand, reply ? CALL_UNAVAILABLE : CALL_UNKNOWN, NULL);
}

static void meet_own(struct call_errand *errand, const struct call *call)
{
    if (is_repeated(errand, call)) {
        refuse(errand, CALL_REPEATED, call);
    } else if (!crosses(errand, call)) {
        refuse(errand, CALL_CALLER_BUSY, call);
    } else {
        undo(errand);
        call_run(errand->port, "answer", call_claim_id(&errand->found),
                 REDIS_ARGS(call_claim_key(&errand->found), errand->user, errand->device,
                            (struct slice){errand->conn, ULID_TEXT_LEN}),
                 crossed, errand);
    }
}

/* ---- a claim stands in the way ---- */

static void look(struct call_errand *errand);
static void look_again(struct call_errand *errand);

static void looked(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    struct slice result = errand->port->is_freed ? SLICE_NONE : call_reply_result(reply);
    size_t side = errand->prepared ? errand->order[errand->next_side] : CALLER;
    struct call call;
    if (slice_is(result, "none")) {
        errand->dead[side] = errand->found;
        (errand->prepared ? take_claims : prepare)(errand);
    } else if (slice_is(result, "preparing")) {
        look_again(errand);
    } else if (slice_is(result, "done") && call_reply_show(reply, &call)) {
        if (side == CALLER || crosses(errand, &call))
            meet_own(errand, &call);
        else
            refuse(errand, CALL_CALLEE_BUSY, NULL);
    } else {
        refuse(errand, CALL_UNAVAILABLE, NULL);
    }
}

static struct call_errand *paused_errand(struct list *place)
{
    return CONTAINER_OF(place, struct call_errand, place);
}

static void resume(struct wheel_timer *timer)
{
    struct call_errand *errand = CONTAINER_OF(timer, struct call_errand, pause);
    list_remove(&errand->place);
    look(errand);
}

/* A request that is being prepared needs a moment, which looking at it does not shorten. */
static void look_again(struct call_errand *errand)
{
    struct loop *loop = errand->port->options.loop;
    if (++errand->looks >= REDIS_CALL_LOOKS_MAX) {
        refuse(errand, CALL_UNAVAILABLE, NULL);
    } else if (errand->looks <= REDIS_CALL_LOOKS_AT_ONCE) {
        look(errand);
    } else {
        list_append(&errand->port->paused, &errand->place);
        errand->pause = (struct wheel_timer){.fire = resume};
        loop_set_timer(loop, &errand->pause, loop->clock.now_ms + REDIS_CALL_LOOK_PAUSE_MS);
    }
}

void call_request_end_paused(struct call_port *port)
{
    while (!list_empty(&port->paused)) {
        struct call_errand *errand = paused_errand(port->paused.next);
        loop_cancel_timer(port->options.loop, &errand->pause);
        list_remove(&errand->place);
        refuse(errand, CALL_UNAVAILABLE, NULL);
    }
}

static void look(struct call_errand *errand)
{
    call_run(errand->port, "check", call_claim_id(&errand->found),
             REDIS_ARGS(call_claim_key(&errand->found)), looked, errand);
}

/* ---- 3: commit ---- */

static void committed(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    struct call call;
    if (slice_is(call_reply_result(reply), "done") && call_reply_show(reply, &call))
        call_errand_end(errand, CALL_DONE, &call);
    else
        refuse(errand, reply ? CALL_UNAVAILABLE : CALL_UNKNOWN, NULL);
}

/* ---- 2: claim ---- */

static void taken(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    bool understood = call_reply_claim(reply, &errand->found) && !errand->port->is_freed;
    if (!understood) {
        refuse(errand, CALL_UNAVAILABLE, NULL);
    } else if (errand->found.len > 0) {
        look_again(errand);
    } else {
        errand->next_side++;
        take_claims(errand);
    }
}

static void take_claims(struct call_errand *errand)
{
    if (errand->next_side == errand->side_count) {
        call_run(errand->port, "commit", errand->id, REDIS_ARGS(call_claim_key(&errand->claim)),
                 committed, errand);
        return;
    }
    size_t side = errand->order[errand->next_side];
    struct redis_store_number ttl;
    call_run_claim(errand->port, user_of(errand, side),
                   REDIS_ARGS(SLICE("take"), call_claim_text(&errand->claim),
                              call_claim_text(&errand->dead[side]),
                              redis_store_number(&ttl, call_claim_ttl_ms(errand->port))),
                   taken, errand);
}

/* ---- 1: prepare ---- */

static void prepared(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    struct slice result = call_reply_result(reply);
    errand->prepared = slice_is(result, "prepared");
    if (errand->prepared && !errand->port->is_freed)
        take_claims(errand);
    else
        refuse(errand, slice_is(result, "taken") ? CALL_ID_TAKEN : CALL_UNAVAILABLE, NULL);
}

static void prepare(struct call_errand *errand)
{
    call_run(errand->port, "prepare", errand->id,
             REDIS_ARGS(call_claim_key(&errand->claim), errand->user, errand->device,
                        (struct slice){errand->conn, ULID_TEXT_LEN},
                        errand->callee.data ? errand->callee : SLICE("")),
             prepared, errand);
}

/* ---- first: is the caller free? ---- */

static void read_own(void *arg, const struct resp_value *reply)
{
    struct call_errand *errand = arg;
    if (errand->port->is_freed || !call_reply_claim(reply, &errand->found))
        refuse(errand, CALL_UNAVAILABLE, NULL);
    else if (errand->found.len)
        look(errand);
    else
        prepare(errand);
}

static bool is_less(struct slice a, struct slice b)
{
    int order = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return order < 0 || (order == 0 && a.len < b.len);
}

void call_request_start(struct call_errand *errand)
{
    struct ulid chance = ulid_make(0, errand->port->options.random);
    ulid_write(errand->claim.bytes, &chance);
    memcpy(errand->claim.bytes + ULID_TEXT_LEN, errand->id.data, errand->id.len);
    errand->claim.len = ULID_TEXT_LEN + errand->id.len;
    errand->side_count = errand->callee.data ? CALL_SIDES : 1;
    bool callee_first = errand->callee.data && is_less(errand->callee, errand->user);
    errand->order[0] = callee_first ? CALLEE : CALLER;
    errand->order[1] = callee_first ? CALLER : CALLEE;
    call_run_claim(errand->port, errand->user, REDIS_ARGS(SLICE("read"), SLICE("")), read_own,
                   errand);
}
