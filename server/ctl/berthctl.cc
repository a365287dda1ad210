#include "server/ctl/berthctl.h"

#include <charconv>
#include <ostream>

#include "common/text.h"
#include "common/units.h"
#include "server/ctl/command_line.h"
#include "server/ctl/render.h"
#include "server/ctl/watch.h"

namespace berth::ctl {
namespace {

Answer<Address> server_address(const Invocation& invocation, const Console& console) {
  if (!invocation.server.empty()) return usage_answer(parse_address("--server", invocation.server));
  const std::string from_environment = console.environment("BERTH_SERVER").value_or("");
  if (from_environment.empty()) return usage_answer(parse_address("--server", kServerDefault));
  return usage_answer(parse_address("BERTH_SERVER", from_environment));
}

Answer<Duration> timeout_of(const Invocation& invocation) {
  if (invocation.timeout.empty()) return invocation.command->timeout;
  const auto timeout = usage_answer(parse_duration("--timeout", invocation.timeout));
  if (timeout && timeout->millis == 0)
    return fail_usage("--timeout = \"0\": accepted: at least 1ms, e.g. \"10s\"");
  return timeout;
}

// Zero: not watched.
Answer<Duration> watch_interval(const Invocation& invocation) {
  const std::string& text = invocation.watch_seconds;
  if (text.empty()) return Duration{};
  double interval = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), interval);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(interval >= 0.1 && interval <= 86400))
    return fail_usage(name_and_value("-w", text) +
                      ": accepted: seconds from 0.1 to 86400, e.g. 2 or 0.5");
  return milliseconds(static_cast<int64_t>(interval * 1000));
}

int report(const Invocation& invocation, const Failure& failure, Console& console) {
  console.err << failure_text(invocation.path, failure);
  return static_cast<int>(failure.exit_code);
}

int run_once(AdminClient& client, const Invocation& invocation, Console& console) {
  auto outcome = invocation.command->produce(client, invocation.arguments);
  if (!outcome) return report(invocation, outcome.error(), console);
  console.out << view_text(outcome->view, invocation.format, console) << std::flush;
  for (const std::string& note : outcome->notes) console.err << note_text(invocation.path, note);
  return static_cast<int>(outcome->exit_code);
}

}  // namespace

int run(const std::vector<std::string>& arguments, Console& console) {
  const auto invocation = parse_command_line(arguments, console);
  if (!invocation) return static_cast<int>(invocation.error());
  const auto address = server_address(*invocation, console);
  if (!address) return report(*invocation, address.error(), console);
  const auto timeout = timeout_of(*invocation);
  if (!timeout) return report(*invocation, timeout.error(), console);
  const auto interval = watch_interval(*invocation);
  if (!interval) return report(*invocation, interval.error(), console);

  auto client = AdminClient::open(*address, *timeout);
  if (!client) return report(*invocation, client.error(), console);
  if (invocation->command->kind == CommandKind::kStream) {
    const auto ended =
        invocation->command->stream(*client, invocation->arguments, invocation->format, console);
    return ended ? static_cast<int>(*ended) : report(*invocation, ended.error(), console);
  }
  if (interval->millis > 0) return watch(*client, *invocation, *interval, console);
  return run_once(*client, *invocation, console);
}

}  // namespace berth::ctl
