// Plans three buffers without torch and checks that two of them share bytes.
#include <livepool/plan/planner.h>
#include <livepool/plan/validate.h>

#include <cstdio>

int main() {
  //  1 |AAAA BBBB|   A and B are never alive together
  //  0 |CCCCCCCCC|
  const livepool::Problem problem{{
      {.id = 0, .lifetime = {0, 4}, .size = 64},
      {.id = 1, .lifetime = {4, 8}, .size = 64},
      {.id = 2, .lifetime = {0, 8}, .size = 64},
  }};
  const livepool::Plan plan = livepool::MakePlan(problem);
  livepool::CheckPlan(problem, plan);
  std::printf("height %lld\n", static_cast<long long>(plan.height));
  return plan.height == 128 ? 0 : 1;
}
