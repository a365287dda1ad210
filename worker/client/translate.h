// Between the plain values of types.h and the messages of the Worker service. Requests are checked
// for shape here, so that a wrong one is refused with a sentence and without a round trip; answers
// are checked too, because offsets from outside become pointers.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/v1/worker.pb.h"
#include "common/error.h"
#include "worker/client/records.h"
#include "worker/client/types.h"

namespace berth::client {

v1::NamespaceSpec to_proto(const NamespaceSpec& spec);
Result<Namespace> namespace_from_proto(const v1::OpenNamespaceResponse& response);

// Errors: kInvalidArgument naming the column. `items_max` zero: no bound known.
Result<v1::WorkerProbeRequest> to_probe_request(const ChainRequest& request, uint32_t items_max);
Result<v1::LoadRequest> to_load_request(const ChainRequest& request, Duration ttl,
                                        uint32_t items_max);
Result<v1::BeginStoreRequest> to_begin_request(const StoreRequest& request, uint32_t items_max);

// Errors: kInternal when the columns do not fit together.
Result<Probe> probe_from_proto(const v1::ProbeResponse& response, size_t chain_length);

// Fills items and replicas. Granted items whose span is not writable memory of this join are
// refused: their replicas go to `refused` and their code becomes kSkippedUnavailable. Errors:
// kInternal as above.
Result<> fill_store(const v1::BeginStoreResponse& response, const std::vector<uint64_t>& sizes,
                    StoreRecord& record, std::vector<uint64_t>& refused);

// Fills state, classes, spans and miss reason. The chain ends before the first chunk with a span
// outside of this join's memory; the return value counts such chunks where a mapped pool has no
// such place. Errors: kInternal as above.
Result<uint32_t> fill_load(const v1::LoadResponse& response, size_t chain_length,
                           LoadRecord& record);

// Sizes of the n items of a request, one each.
std::vector<uint64_t> sizes_by_item(const v1::BeginStoreRequest& request, size_t item_count);

}  // namespace berth::client
