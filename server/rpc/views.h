// The directory as rows for people: pure functions of what is installed. Each call does bounded
// work under the view: a page of rows, or a slice of a long table that the caller goes on with.
#pragma once

#include <cstdint>
#include <string>

#include "berth/v1/admin.pb.h"
#include "common/error.h"
#include "common/time.h"
#include "server/directory/config.h"
#include "server/directory/directory.h"

namespace berth::rpc {

struct ViewContext {
  const Directory& directory;
  const DirectoryConfig& config;
  Time now;  // what ages and deadlines are counted from
};

// Errors: unknown_namespace.
Result<const Namespace*> namespace_named(const Directory& directory, const std::string& name);

inline constexpr uint32_t kPageRowsDefault = 1000;
inline constexpr uint32_t kPageRowsMax = 10'000;

// Errors: invalid_argument (limit).
Result<> list(const ViewContext&, const v1::ListPoolsRequest&, v1::ListPoolsResponse*);
Result<> list(const ViewContext&, const v1::ListSessionsRequest&, v1::ListSessionsResponse*);
Result<> list(const ViewContext&, const v1::ListNamespacesRequest&, v1::ListNamespacesResponse*);
Result<> list(const ViewContext&, const v1::ListLeasesRequest&, v1::ListLeasesResponse*);
Result<> list(const ViewContext&, const v1::ListReservationsRequest&,
              v1::ListReservationsResponse*);
Result<> list(const ViewContext&, const v1::ListPinsRequest&, v1::ListPinsResponse*);
void list(const ViewContext&, v1::ListJobsResponse*);
void fill(v1::GetUsageResponse*, const ViewContext&);
// The counts of the status; the server adds what it knows about itself.
void fill(v1::GetStatusResponse*, const ViewContext&);

// ---- Replicas: too many for one hold of the view ----------------------------------------------

// Slots that one slice looks at.
inline constexpr uint32_t kSliceSlotsMax = 10'000;
// Slots that one call looks at. A filter that matches little gets empty pages and goes on.
inline constexpr uint32_t kCallSlotsMax = 200'000;

// Where a listing goes on; cheap to keep while the view is let go between slices.
struct ObjectScan {
  uint32_t slot = 0;
  uint32_t slots_left = kCallSlotsMax;
  uint32_t rows_left = 0;
  NamespaceId namespace_filter;

  bool is_over(const Directory& directory) const {
    return rows_left == 0 || slots_left == 0 || slot >= directory.replicas().slot_limit();
  }
};
// Errors: invalid_argument, unknown_namespace.
Result<ObjectScan> begin_scan(const ViewContext&, const v1::ListObjectsRequest&);
void scan_slice(const ViewContext&, const v1::ListObjectsRequest&, ObjectScan&,
                v1::ListObjectsResponse*);

// Every copy of one object, with their reservations. Errors: unknown_replica, unknown_namespace,
// invalid_argument.
Result<> inspect(const ViewContext&, const v1::InspectObjectRequest&, v1::InspectObjectResponse*);
// The leases on those copies, one slice of all leases at a time. Returns where to go on; none when
// every lease was looked at.
inline constexpr size_t kSliceLeasesMax = 1000;
LeaseId find_leases_slice(const ViewContext&, LeaseId after, v1::InspectObjectResponse*);

// Also for metrics.
v1::PoolState state_of(const Directory& directory, const Pool& pool);
v1::SessionState state_of(const Directory& directory, const Session& session);

}  // namespace berth::rpc
