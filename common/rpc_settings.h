// The gRPC settings on which both sides must agree, in one place. A client that pings more often
// than the server allows is thrown out of the connection (ENHANCE_YOUR_CALM), so the pair is
// checked right here.
#pragma once

#include "common/time.h"

namespace berth {

// An idle connection is pinged this often, by either side, so that one that a firewall forgot is
// noticed.
inline constexpr Duration kRpcKeepaliveEvery = seconds(30);
// No answer within this closes the connection. Long enough that a peer stopped for half a minute
// keeps it; heartbeats, not pings, decide about sessions.
inline constexpr Duration kRpcKeepaliveWithin = seconds(40);
// The shortest distance of pings that a server accepts, with or without calls.
inline constexpr Duration kRpcPingIntervalMin = seconds(10);
static_assert(kRpcKeepaliveEvery >= kRpcPingIntervalMin * 2,
              "our own clients must stay well clear of the server's ping limit");

// Reconnects begin fast, because a restarted server is back within a second, and stay below a
// heartbeat.
inline constexpr Duration kRpcReconnectFirst = milliseconds(100);
inline constexpr Duration kRpcReconnectMax = seconds(3);
// How long one attempt may take until the peer has said its first word; a peer on a busy host is
// slow to say it. gRPC names this a backoff.
inline constexpr Duration kRpcConnectWithin = seconds(5);

// The largest message of either direction. Batches are bounded by items and stay far below.
inline constexpr int kRpcMessageBytesMax = 8 << 20;
inline constexpr int kRpcMetadataBytesMax = 16 << 10;
// Calls at once on one connection; more wait in the client.
inline constexpr int kRpcStreamsPerConnectionMax = 1024;

}  // namespace berth
