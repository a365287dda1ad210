#include "server/ctl/fields.h"
#include "server/ctl/views.h"

namespace berth::ctl {
namespace {

Answer<v1::FenceRequest> fence_request(const Arguments& arguments) {
  if (arguments.has("SESSION") == arguments.has("--node"))
    return fail_usage("name what to fence: either SESSION or --node NODE");
  if (arguments.text("--reason").empty())
    return fail_usage("--reason TEXT is required: it is recorded with the fence");
  const auto session = arguments.id("SESSION");
  if (!session) return fail(session.error());
  v1::FenceRequest request;
  request.set_session(*session);
  request.set_node(arguments.text("--node"));
  request.set_reason(arguments.text("--reason"));
  request.set_confirm_unmapped(arguments.has("--confirm-unmapped"));
  return request;
}

// What the operator can do that a program, for whom the general advice is written, cannot.
std::string operators_advice(const Failure& failure) {
  if (failure.reason == name_of(Reason::kStillMapped))
    return "Make sure that no other host maps this memory any more, then repeat with "
           "--confirm-unmapped.";
  if (failure.reason == name_of(Reason::kUnknownSession))
    return "`berthctl sessions` lists those that are known.";
  return failure.advice;
}

Answer<Outcome> fence(AdminClient& client, const Arguments& arguments) {
  auto request = fence_request(arguments);
  if (!request) return fail(std::move(request.error()));
  auto answer = client.call(*request);
  if (!answer) {
    answer.error().advice = operators_advice(answer.error());
    return fail(std::move(answer.error()));
  }
  const std::vector<Field<uint64_t>> fields = {
      {{"session", "FENCED", Kind::kId}, [](const uint64_t& session) -> Value { return session; }}};
  const SectionText text{"fenced", "Nothing to fence: no session is known there."};
  return Outcome{.view = view_of(section_of(text, fields, answer->sessions()))};
}

}  // namespace

Command fence_command() {
  return {
      .name = "fence",
      .summary = "State that a session's process, or a node, is dead",
      .details =
          "Your word stands for the proof that the server could not get: what the session held is "
          "given\n"
          "back and may be used again. Fencing a process that still runs corrupts what it reads. "
          "The\n"
          "reason is recorded. A session that owns a DOMAIN pool needs --confirm-unmapped as well.",
      .example =
          "berthctl fence e3-17 --reason \"host power lost, confirmed by BMC\"\n"
          "berthctl fence --node gpu-12 --reason \"decommissioned\"",
      .positionals = {{"SESSION", "A session id, e.g. e3-17 (`berthctl sessions` lists them)",
                       Arity::kOptional}},
      .options = {{"--node", "NODE", "Every session of this node"},
                  {"--reason", "TEXT", "Required: why you know; it is recorded"},
                  {"--confirm-unmapped", "",
                   "No other host maps the session's DOMAIN memory any more"}},
      .kind = CommandKind::kAction,
      .produce = fence,
      .timeout = seconds(30)};
}

}  // namespace berth::ctl
