// Whether this process is the forked child of one that has pools.
#pragma once

namespace livepool {

// Note [Forked children]
// A child has the forking thread alone. What the parent's other threads held at the fork, arenas and locks, stays
// held in the child for ever, and CUDA does not work there at all. So a child (a worker of a DataLoader, say) is
// served by upstream alone: no pass goes on in it, it borrows no arena and trims none. The slots that it has
// inherited are copies of the parent's; it reads and frees them as before, which takes no lock.
bool InForkedChild();

// From now on forks are noticed. Each pool calls it.
void NoticeForks();

}  // namespace livepool
