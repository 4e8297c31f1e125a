/* The state store on a single Redis server. */
#include "store/redis_state_testing.h"

int main(void)
{
    struct redis_fleet fleet;
    redis_fleet_open(&fleet, false);
    int failed = redis_state_testing_suite(&fleet, "Redis");
    redis_fleet_close(&fleet);
    return failed;
}
