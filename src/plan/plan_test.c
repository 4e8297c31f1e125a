#include "plan/plan.h"

#include "base/buffer.h"
#include "plan/plan_load.h"
#include "plan/plan_print.h"
#include "text/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double EXACT = 1e-9;

/* Costs that make the sums easy to do by hand. */
static const struct plan_costs ROUND_COSTS = {
    .edge_us_per_heartbeat = 10,
    .edge_us_per_renewal = 20,
    .edge_us_per_connect = 100,
    .edge_us_per_close = 50,
    .edge_us_per_message = 30,
    .edge_us_per_delivery = 5,
    .edge_idle_us_per_second = 1000,
    .edge_bytes_per_connection = 1000,
    .edge_bytes_per_process = 1e6,
    .kernel_bytes_per_connection = 4000,
    .client_bytes_per_heartbeat = 100,
    .redis_us_per_renewal = 10,
    .redis_us_per_connect = 100,
    .redis_us_per_close = 50,
    .redis_us_per_message = 10,
    .redis_us_per_delivery = 5,
    .redis_cluster_us_per_renewal = 20,
    .redis_cluster_us_per_connect = 200,
    .redis_bytes_per_user = 1000,
    .redis_bytes_per_further_device = 500,
    .redis_bytes_per_absent_user = 100,
    .redis_traffic_bytes_per_renewal = 60,
    .redis_connections_per_worker = 2,
};

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fmax(1, fabs(expected))))
        fail_msg("expected %.9g, got %.9g", expected, value);
}

static struct plan_load make_load(double users)
{
    struct plan_load load;
    plan_load_init(&load);
    load.users = users;
    load.devices = 1;
    load.sessions_per_day = 0;
    load.contacts = 0;
    load.messages_per_second = 0;
    return load;
}

static struct plan compute(struct plan_load load)
{
    struct plan plan;
    plan_compute(&plan, &load, &ROUND_COSTS);
    return plan;
}

/* ---- rates ---- */

static void rates_follow_profile_and_devices(void **state)
{
    (void)state;
    struct plan_load load = make_load(900000);
    load.devices = 2;
    struct plan plan = compute(load);
    assert_near(plan.connections, 1800000, EXACT);
    assert_near(plan.heartbeats_per_second, 60000, EXACT);
    assert_near(plan.renewals_per_second, 1800000 / 33.75, 1e-6);
    assert_true(plan_load_set_profile(&load, "realtime"));
    assert_near(compute(load).heartbeats_per_second, 360000, EXACT);
}

static void messages_default_to_a_number_a_day_and_user(void **state)
{
    (void)state;
    struct plan_load load = make_load(86400);
    load.messages_per_second = -1;
    struct plan plan = compute(load);
    assert_near(plan.messages_per_second, 40, EXACT);
    assert_near(plan.deliveries_per_second, 80, EXACT);
}

/* ---- counts ---- */

static void edges_are_as_many_as_connections_require(void **state)
{
    (void)state;
    struct plan plan = compute(make_load(1000001));
    assert_near(plan.edges, 11, EXACT);
    assert_int_equal(plan.edge_reason, PLAN_EDGE_CONNECTIONS);
    assert_near(plan.use[PLAN_EDGE_CONNECTIONS], 1000001.0 / 1100000, EXACT);
}

static void edges_are_more_if_their_memory_is_small(void **state)
{
    (void)state;
    struct plan_load load = make_load(1000000);
    load.edge_memory_bytes = 250e6; /* 5,000 bytes a connection: 50,000 of them */
    struct plan plan = compute(load);
    assert_int_equal(plan.edge_reason, PLAN_EDGE_MEMORY);
    assert_near(plan.edges, 21, EXACT); /* 20 for connections, and the processes themselves */
}

static void fixed_edges_show_that_they_do_not_suffice(void **state)
{
    (void)state;
    struct plan_load load = make_load(1000000);
    load.edges = 2;
    struct plan plan = compute(load);
    assert_near(plan.edges, 2, EXACT);
    assert_near(plan.use[PLAN_EDGE_CONNECTIONS], 5, EXACT);
    assert_int_equal(plan.bottleneck, PLAN_EDGE_CONNECTIONS);
}

static void one_redis_carries_a_small_fleet(void **state)
{
    (void)state;
    struct plan plan = compute(make_load(270000));
    assert_near(plan.redis_nodes, 1, EXACT);
    assert_near(plan.redis_cores_used, 270000 / 33.75 * 10e-6, EXACT);
    assert_near(plan.redis_bytes_used, 270000 * 1000.0 + 9 * 270000 * 100.0, EXACT);
    assert_near(plan.aggregators, 0, EXACT);
}

/* More than one node is a cluster, where a renewal costs more, and which has at least three masters. */
static void several_redis_nodes_cost_what_a_cluster_costs(void **state)
{
    (void)state;
    struct plan plan = compute(make_load(27e6));
    assert_near(plan.redis_cores_used, 27e6 / 33.75 * 20e-6, 1e-6);
    assert_near(plan.redis_nodes, 32, EXACT);
    assert_int_equal(plan.redis_reason, PLAN_REDIS_PROCESSOR);
    struct plan_load small = make_load(100000);
    small.redis_memory_bytes = 150e6;
    assert_near(compute(small).redis_nodes, 3, EXACT);
}

static void aggregators_come_when_redis_has_too_many_clients(void **state)
{
    (void)state;
    struct plan plan = compute(make_load(50e6)); /* 500 edges of 8 workers: 8,000 connections */
    assert_near(plan.redis_clients_per_node, 8000, EXACT);
    assert_near(plan.aggregators, 0, EXACT);
    plan = compute(make_load(100e6));
    assert_true(plan.aggregators >= 2);
    assert_near(plan.redis_clients_per_node, plan.aggregators * 8 * 2, EXACT);
    assert_true(plan.use[PLAN_REDIS_CLIENTS] <= 1);
}

static void storm_counts_the_clients_of_one_edge(void **state)
{
    (void)state;
    struct plan_load load = make_load(200000);
    load.storm_seconds = 10;
    struct plan plan = compute(load);
    assert_near(plan.storm_connects_per_second, 10000, EXACT);
    assert_int_equal(plan.redis_reason, PLAN_REDIS_STORM); /* 100 µs each: more than a core */
}

static void every_resource_is_within_its_limit(void **state)
{
    (void)state;
    for (double users = 1; users < 1e10; users *= 7) {
        struct plan_load load = make_load(users);
        load.contacts = 20;
        load.sessions_per_day = 10;
        struct plan plan = compute(load);
        for (int i = 0; i < PLAN_RESOURCE_COUNT; i++) {
            assert_true(isfinite(plan.use[i]));
            if (i != PLAN_AGGREGATOR_PROCESSOR) /* maxclients bounds their number */
                assert_true(plan.use[i] <= 1 + EXACT);
        }
    }
}

/* ---- costs ---- */

static void builtin_costs_are_complete(void **state)
{
    (void)state;
    struct plan_costs costs;
    char error[PLAN_COSTS_ERROR_MAX] = "";
    assert_true(plan_costs_parse(&costs, PLAN_COSTS_TEXT, strlen(PLAN_COSTS_TEXT), error));
    assert_true(costs.edge_us_per_heartbeat > 0);
    assert_true(costs.redis_bytes_per_user > 0);
}

static void assert_costs_refused(const char *text, const char *reason)
{
    struct plan_costs costs;
    char error[PLAN_COSTS_ERROR_MAX] = "";
    assert_false(plan_costs_parse(&costs, text, strlen(text), error));
    if (!strstr(error, reason))
        fail_msg("%s: expected %s, got %s", text, reason, error);
}

static void wrong_costs_are_refused_with_the_reason(void **state)
{
    (void)state;
    assert_costs_refused("{\"costs\":{\"edge_us_per_heartbeet\":1}}", "unknown cost");
    assert_costs_refused("{\"costs\":{\"edge_us_per_heartbeat\":-1}}", "0 or more");
    assert_costs_refused("{\"costs\":{\"edge_us_per_heartbeat\":\"1\"}}", "0 or more");
    assert_costs_refused("{\"costs\":{\"edge_us_per_heartbeat\":1}}", "is missing");
    assert_costs_refused("{\"costs\":{", "at byte");
    assert_costs_refused("{}", "is missing");
    assert_costs_refused("", "at byte");
}

/* ---- options ---- */

static double parse_users(const char *text)
{
    struct plan_load load = {0};
    char error[PLAN_LOAD_ERROR_MAX];
    return plan_load_set(&load, "users", text, error) ? load.users : -1;
}

static void numbers_may_have_suffixes(void **state)
{
    (void)state;
    assert_near(parse_users("100M"), 100e6, EXACT);
    assert_near(parse_users("1.5K"), 1500, EXACT);
    assert_near(parse_users("2B"), 2e9, EXACT);
    assert_near(parse_users("2048KiB"), 2097152, EXACT);
}

static void wrong_numbers_are_refused(void **state)
{
    static const char *const WRONG[] = {"",    "0",   "-1",  "M",    "10X", "10 M",
                                        " 10", "nan", "inf", "1e99", "10MM"};
    (void)state;
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++)
        if (parse_users(WRONG[i]) != -1)
            fail_msg("%s was accepted", WRONG[i]);
}

/* ---- output ---- */

static void json_is_valid_and_text_names_the_bottleneck(void **state)
{
    (void)state;
    struct plan_load load = make_load(100e6);
    struct plan plan = compute(load);
    struct buffer out = BUFFER_INIT;
    struct json json;
    plan_print_json(&plan, &load, &out);
    json_init(&json, out.data, out.len);
    assert_true(json_skip(&json) && json_done(&json));
    buffer_clear(&out);
    plan_print_text(&plan, &load, &out);
    buffer_append_byte(&out, '\0');
    assert_non_null(strstr(out.data, "100,000,000 users online"));
    assert_non_null(strstr(out.data, "first bottleneck: "));
    assert_non_null(strstr(out.data, plan_resource_text(plan.bottleneck)));
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_profile_and_devices),
        cmocka_unit_test(messages_default_to_a_number_a_day_and_user),
        cmocka_unit_test(edges_are_as_many_as_connections_require),
        cmocka_unit_test(edges_are_more_if_their_memory_is_small),
        cmocka_unit_test(fixed_edges_show_that_they_do_not_suffice),
        cmocka_unit_test(one_redis_carries_a_small_fleet),
        cmocka_unit_test(several_redis_nodes_cost_what_a_cluster_costs),
        cmocka_unit_test(aggregators_come_when_redis_has_too_many_clients),
        cmocka_unit_test(storm_counts_the_clients_of_one_edge),
        cmocka_unit_test(every_resource_is_within_its_limit),
        cmocka_unit_test(builtin_costs_are_complete),
        cmocka_unit_test(wrong_costs_are_refused_with_the_reason),
        cmocka_unit_test(numbers_may_have_suffixes),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(json_is_valid_and_text_names_the_bottleneck),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
