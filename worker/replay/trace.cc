#include "worker/replay/trace.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/os_error.h"

namespace berth::replay {
namespace {

tl::unexpected<Error> refuse_line(const std::string& path, size_t line, const std::string& why) {
  return refuse(Reason::kInvalidArgument,
                path + ":" + std::to_string(line) + ": " + why +
                    "; accepted is one JSON object a line with timestamp, input_length, "
                    "output_length (numbers) and hash_ids (numbers)");
}

bool take_number(const nlohmann::json& object, const char* key, uint64_t& into) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return false;
  const double number = found->get<double>();
  if (number < 0 || number > 1e15) return false;
  into = static_cast<uint64_t>(number);
  return true;
}

Result<Request> parse_line(const std::string& path, size_t line, const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return refuse_line(path, line, "not a JSON object");
  Request request;
  if (!take_number(object, "timestamp", request.timestamp_ms) ||
      !take_number(object, "input_length", request.input_length) ||
      !take_number(object, "output_length", request.output_length))
    return refuse_line(path, line, "a number is missing, negative or too large");
  const auto ids = object.find("hash_ids");
  if (ids == object.end() || !ids->is_array() || ids->size() > kBlocksPerRequestMax)
    return refuse_line(path, line, "hash_ids is missing or has more than 65536 elements");
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned()) return refuse_line(path, line, "a hash id is not a whole number");
    request.hash_ids.push_back(id.get<uint64_t>());
  }
  return request;
}

}  // namespace

Result<std::vector<Request>> read_trace(const std::string& path, size_t requests_max) {
  std::ifstream file(path);
  if (!file) {
    const std::string why = refuse_os("open trace " + path, errno).value().message;
    return refuse(Reason::kInvalidArgument, why);
  }
  std::vector<Request> requests;
  std::string text;
  for (size_t line = 1; std::getline(file, text); ++line) {
    if (requests_max != 0 && requests.size() == requests_max) break;
    if (text.empty()) continue;
    Result<Request> request = parse_line(path, line, text);
    if (!request) return tl::unexpected(request.error());
    requests.push_back(std::move(*request));
  }
  if (requests.empty()) return refuse_line(path, 1, "no request in the whole file");
  return requests;
}

uint64_t count_blocks(const std::vector<Request>& requests) {
  uint64_t blocks = 0;
  for (const Request& request : requests) blocks += request.hash_ids.size();
  return blocks;
}

}  // namespace berth::replay
