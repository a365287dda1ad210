// Pins: copies that no policy may evict, set, taken off and listed.
#include <algorithm>

#include "common/units.h"
#include "server/ctl/chunk_names.h"
#include "server/ctl/list_options.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

Value kind_word(v1::PinKind kind) { return word_of(v1::PinKind_Name(kind), "PIN_KIND_", kind); }

const std::vector<Field<v1::PinRow>>& pin_fields() {
  using Pin = v1::PinRow;
  static const std::vector<Field<Pin>> fields = {
      {{"replica", "REPLICA", Kind::kId}, [](const Pin& p) -> Value { return p.replica(); }},
      {{"namespace", "NAMESPACE"}, [](const Pin& p) -> Value { return p.namespace_name(); }},
      {{"digest", "DIGEST", Kind::kHex}, [](const Pin& p) -> Value { return p.digest(); }},
      {{"shard", "SHARD", Kind::kCount}, [](const Pin& p) -> Value { return uint64_t{p.shard()}; }},
      {{"part", "PART", Kind::kCount}, [](const Pin& p) -> Value { return uint64_t{p.part()}; }},
      {{"pool", "POOL", Kind::kId}, [](const Pin& p) -> Value { return p.pool(); }},
      {{"size_bytes", "SIZE", Kind::kBytes}, [](const Pin& p) -> Value { return p.size_bytes(); }},
      {{"kind", "KIND", Kind::kWord}, [](const Pin& p) { return kind_word(p.kind()); }},
      {{"expires_in_ms", "EXPIRES-IN", Kind::kMillis},
       [](const Pin& p) {
         return p.kind() == v1::PIN_KIND_SOFT ? Value{p.expires_in_ms()} : Value{};
       }},
  };
  return fields;
}

Answer<Outcome> produce_pins(AdminClient& client, const Arguments& arguments) {
  return produce_list<v1::PinRow>(
      client, v1::ListPinsRequest{}, arguments,
      {{"pins", "No pins: every copy may be evicted."}, pin_fields()},
      [](auto& response) { return response.mutable_pins(); },
      [](const v1::PinRow& row) { return row.replica(); });
}

Answer<v1::PinRequest> pin_request(const Arguments& arguments) {
  if (arguments.has("--soft") == arguments.has("--hard"))
    return fail_usage("name the kind of pin: either --soft or --hard");
  v1::PinRequest request;
  request.set_kind(arguments.has("--hard") ? v1::PIN_KIND_HARD : v1::PIN_KIND_SOFT);
  if (!arguments.has("--ttl")) return request;
  if (arguments.has("--hard"))
    return fail_usage("--ttl is for soft pins: a hard one stays until it is taken off");
  const auto ttl = usage_answer(parse_duration("--ttl", arguments.text("--ttl")));
  if (!ttl) return fail(ttl.error());
  if (ttl->millis == 0) return fail_usage("--ttl = \"0\": accepted: at least 1ms, e.g. \"1h\"");
  request.set_ttl_ms(static_cast<uint64_t>(ttl->millis));
  return request;
}

Answer<Outcome> pin(AdminClient& client, const Arguments& arguments) {
  auto request = pin_request(arguments);
  if (!request) return fail(std::move(request.error()));
  const auto chunks =
      read_chunks(client, arguments.text("NAMESPACE"), "DIGEST", arguments.all("DIGEST"));
  if (!chunks) return fail(chunks.error());
  const auto codes = send_chunks(client, *chunks, std::move(*request),
                                 [](const auto& answer) { return answer.pinned(); });
  if (!codes) return fail(codes.error());
  Outcome outcome = chunk_outcome("pinned", *chunks, *codes, {"not_present", "pinned", "no_room"});
  const auto absent = std::count(codes->begin(), codes->end(), 0);
  const auto no_room = std::count(codes->begin(), codes->end(), 2);
  if (absent > 0)
    outcome.notes.push_back(std::to_string(absent) + " of " + std::to_string(codes->size()) +
                            " chunks have no READY copy");
  if (no_room > 0)
    outcome.notes.push_back(
        std::to_string(no_room) + " of " + std::to_string(codes->size()) +
        " chunks found no room: hard pins of a pool stay under its low watermark, and the server "
        "keeps at most pins_max");
  if (absent + no_room > 0) outcome.exit_code = ExitCode::kRefused;
  return outcome;
}

Answer<Outcome> unpin(AdminClient& client, const Arguments& arguments) {
  const auto chunks =
      read_chunks(client, arguments.text("NAMESPACE"), "DIGEST", arguments.all("DIGEST"));
  if (!chunks) return fail(chunks.error());
  const auto codes = send_chunks(client, *chunks, v1::UnpinRequest{},
                                 [](const auto& answer) { return answer.unpinned(); });
  if (!codes) return fail(codes.error());
  Outcome outcome = chunk_outcome("unpinned", *chunks, *codes, {"not_pinned", "unpinned"});
  const auto none = std::count(codes->begin(), codes->end(), 0);
  if (none == 0) return outcome;
  outcome.exit_code = ExitCode::kRefused;
  outcome.notes.push_back(std::to_string(none) + " of " + std::to_string(codes->size()) +
                          " chunks were not pinned");
  return outcome;
}

const std::vector<PositionalSpec>& chunk_positionals() {
  static const std::vector<PositionalSpec> specs = {
      {"NAMESPACE", "The namespace of the chunks"},
      {"DIGEST", "Whole prefix digests in hex", Arity::kMany}};
  return specs;
}

}  // namespace

Command pin_command() {
  return {
      .name = "pin",
      .summary = "Keep chunks from being evicted",
      .details =
          "Every READY copy of every shard and part of a chunk, or none. A soft pin ends with "
          "its time,\n"
          "a hard one when it is taken off; all hard pins of a pool stay under its low "
          "watermark. A repeat\n"
          "changes kind and time. A drain, an evicted namespace or a dead worker takes pinned "
          "copies, too.\n"
          "Exits with 1 when one of the chunks could not be pinned; the others are all the "
          "same.",
      .example =
          "berthctl pin chat-8b 00112233445566778899aabbccddeeff --soft --ttl 6h\n"
          "berthctl pin chat-8b 00112233445566778899aabbccddeeff --hard",
      .positionals = chunk_positionals(),
      .options = {{"--soft", "", "Until its time is over"},
                  {"--ttl", "DURATION", "How long a soft pin holds, e.g. 6h (default: pin_ttl)"},
                  {"--hard", "", "Until it is taken off"}},
      .kind = CommandKind::kAction,
      .produce = pin,
      .timeout = seconds(30)};
}

Command unpin_command() {
  return {.name = "unpin",
          .summary = "Take pins off chunks",
          .details = "Exits with 1 when one of the chunks was not pinned.",
          .example = "berthctl unpin chat-8b 00112233445566778899aabbccddeeff",
          .positionals = chunk_positionals(),
          .options = {},
          .kind = CommandKind::kAction,
          .produce = unpin,
          .timeout = seconds(30)};
}

Command pins_command() {
  return {.name = "pins",
          .summary = "Copies that are kept from being evicted",
          .details = "",
          .example = "berthctl pins\nberthctl pins --json --limit 100",
          .positionals = {},
          .options = {kLimitOption},
          .produce = produce_pins};
}

}  // namespace berth::ctl
