/* The state store on a Redis cluster. */
#include "store/redis_state_testing.h"

int main(void)
{
    struct redis_fleet fleet;
    redis_fleet_open(&fleet, true);
    int failed = redis_state_testing_suite(&fleet, "a Redis cluster");
    redis_fleet_close(&fleet);
    return failed;
}
