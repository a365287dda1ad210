// How gRPC's own locks behave in a process that serves or calls. Of the whole process, from any
// thread, at any time.
#pragma once

namespace berth {

// Switches off the search for cycles in the order of locks that absl does where it was built
// without NDEBUG, as distributions build it: gRPC takes tens of locks for one call. Whoever makes a
// server or a channel calls this; calling it again changes nothing.
void skip_lock_order_checks();

}  // namespace berth
