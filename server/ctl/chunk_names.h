// Chunks as an operator types them: a namespace and whole digests in hex. Each digest is held
// against the namespace's width before anything is sent, because a request carries them back to
// back and two halves would pass for another one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "server/ctl/command.h"
#include "server/ctl/fields.h"

namespace berth::ctl {

struct NamedChunks {
  std::string namespace_name;
  std::vector<std::string> digests;  // raw bytes, each of the namespace's width
  size_t per_call = 1;               // below every bound of the server on one request
};

// `argument` is what the digests were given as ("DIGEST" or "--digest"): the error quotes it.
Answer<NamedChunks> read_chunks(AdminClient& client, const std::string& namespace_name,
                                std::string_view argument, const std::vector<std::string>& hex);

// Sends them in requests of bounded size and collects the answer's column, one code a chunk. An
// error names how many were done before it.
template <class Request, class ColumnOf>
Answer<std::vector<uint8_t>> send_chunks(AdminClient& client, const NamedChunks& chunks,
                                         Request request, ColumnOf column_of) {
  std::vector<uint8_t> codes;
  request.set_namespace_name(chunks.namespace_name);
  for (size_t begin = 0; begin < chunks.digests.size(); begin += chunks.per_call) {
    const size_t end = std::min(begin + chunks.per_call, chunks.digests.size());
    request.clear_digests();
    for (size_t i = begin; i < end; ++i) request.mutable_digests()->append(chunks.digests[i]);
    auto answer = client.call(request);
    if (!answer) {
      if (begin > 0)
        answer.error().message +=
            "; it was done for the first " + std::to_string(begin) + " digests";
      return fail(std::move(answer.error()));
    }
    const std::string& column = column_of(*answer);
    for (size_t i = 0; i < end - begin; ++i)
      codes.push_back(i < column.size() ? static_cast<uint8_t>(column[i]) : 0);
  }
  return codes;
}

// A row for each chunk and what became of it; `words` by code.
Outcome chunk_outcome(std::string_view section, const NamedChunks& chunks,
                      const std::vector<uint8_t>& codes, const std::vector<std::string>& words);

}  // namespace berth::ctl
