#include "server/ctl/command_line.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <sstream>

#include "common/version.h"

namespace berth::ctl {
namespace {

constexpr std::string_view kExitCodes =
    "Exit codes: 0 ok, 1 refused or something is broken, 2 usage, 3 server unreachable, 4 not "
    "ready";

// More than a shell passes on.
constexpr int kValuesMax = 1 << 20;

// One level of the command line: the program, a command, or its subcommand.
struct Level {
  const Command* command = nullptr;  // none: the program itself
  CLI::App* app = nullptr;
  std::vector<std::pair<std::string_view, CLI::Option*>> arguments;
  CLI::Option* server = nullptr;
  CLI::Option* timeout = nullptr;
  CLI::Option* json = nullptr;
  CLI::Option* csv = nullptr;
  CLI::Option* watch = nullptr;
  std::vector<Level> inner = {};
};

// Given on every level, so that they may stand before or behind the command.
void add_common_options(Level& level) {
  const std::string group = "Common options";
  level.json = level.app->add_flag("--json")->description("Print JSON")->group(group);
  level.csv = level.app->add_flag("--csv")->description("Print CSV")->group(group);
  const std::string server_help =
      "HOST:PORT or unix:/PATH (default: BERTH_SERVER, else 127.0.0.1:7420)";
  level.server = level.app->add_option("--server", server_help)->type_name("ADDR")->group(group);
  const std::string timeout_help = "How long to wait for an answer, e.g. 10s";
  level.timeout =
      level.app->add_option("--timeout", timeout_help)->type_name("DURATION")->group(group);
  if (!level.command || level.command->kind != CommandKind::kView) return;
  const std::string watch_help = "Again every so many seconds, e.g. 2 or 0.5";
  level.watch = level.app->add_option("-w,--watch", watch_help)->type_name("SECONDS")->group(group);
}

void add_positional(Level& level, const PositionalSpec& spec) {
  CLI::Option* option =
      level.app->add_option(std::string(spec.name))->description(std::string(spec.help));
  option->type_name("");
  const bool is_required = spec.arity == Arity::kOne || spec.arity == Arity::kMany;
  if (is_required) option->required();
  if (spec.arity == Arity::kMany || spec.arity == Arity::kAny)
    option->expected(is_required ? 1 : 0, kValuesMax)->allow_extra_args();
  level.arguments.emplace_back(spec.name, option);
}

// "-f,--follow" is known to its command as "--follow".
std::string_view long_name(std::string_view name) {
  const size_t comma = name.rfind(',');
  return comma == std::string_view::npos ? name : name.substr(comma + 1);
}

void add_option(Level& level, const OptionSpec& spec) {
  const std::string name(spec.name);
  const std::string help(spec.help);
  CLI::Option* option = nullptr;
  if (spec.value.empty()) {
    option = level.app->add_flag(name, help);
  } else {
    option = level.app->add_option(name, help)->type_name(std::string(spec.value));
    if (spec.arity == Arity::kMany) option->expected(1, kValuesMax)->allow_extra_args();
  }
  if (!spec.accepted.empty())
    option->check(
        CLI::IsMember(std::vector<std::string>(spec.accepted.begin(), spec.accepted.end())));
  level.arguments.emplace_back(long_name(spec.name), option);
}

std::string footer_of(const Command& command) {
  std::string footer;
  if (!command.details.empty()) footer += std::string(command.details) + "\n\n";
  footer += command.example.find('\n') == std::string_view::npos ? "Example:\n  " : "Examples:\n  ";
  for (const char c : command.example) {
    footer += c;
    if (c == '\n') footer += "  ";
  }
  return footer + "\n\n" + std::string(kExitCodes);
}

Level add_command(CLI::App& parent, const Command& command) {
  Level level{.command = &command,
              .app = parent.add_subcommand(std::string(command.name), std::string(command.summary)),
              .arguments = {}};
  for (const PositionalSpec& spec : command.positionals) add_positional(level, spec);
  for (const OptionSpec& spec : command.options) add_option(level, spec);
  add_common_options(level);
  level.app->footer(footer_of(command));
  level.app->require_subcommand(0, 1);
  for (const Command& inner : command.subcommands)
    level.inner.push_back(add_command(*level.app, inner));
  return level;
}

Level add_program(CLI::App& app) {
  Level program{.app = &app, .arguments = {}};
  add_common_options(program);
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  berthctl status\n  berthctl usage -w 2\n  berthctl objects --json --limit "
      "10\n\n" +
      std::string(kExitCodes) + "\n`berthctl COMMAND --help` says more about each command.");
  for (const Command& command : commands()) program.inner.push_back(add_command(app, command));
  return program;
}

bool was_given(const CLI::Option* option) { return option && option->count() > 0; }

// The innermost level that was named, with everything on the way to it taken along.
class InvocationReader {
 public:
  Invocation read(const Level& program) {
    invocation_.path = "berthctl";
    take(program);
    return std::move(invocation_);
  }

 private:
  void take(const Level& level) {
    take_common(level);
    for (const Level& inner : level.inner)
      if (inner.app->parsed()) {
        invocation_.path += " " + std::string(inner.command->name);
        return take(inner);
      }
    invocation_.command = level.command;
    for (const auto& [name, option] : level.arguments)
      if (was_given(option)) invocation_.arguments.set(name, option->results());
  }

  void take_common(const Level& level) {
    if (was_given(level.server)) invocation_.server = level.server->results().front();
    if (was_given(level.timeout)) invocation_.timeout = level.timeout->results().front();
    if (was_given(level.watch)) invocation_.watch_seconds = level.watch->results().front();
    if (was_given(level.json)) invocation_.format = Format::kJson;
    if (was_given(level.csv)) invocation_.format = Format::kCsv;
  }

  Invocation invocation_;
};

// What CLI11 lets through and no command can mean.
std::string contradiction_in(const Level& level) {
  bool json = false;
  bool csv = false;
  const Level* at = &level;
  while (at) {
    json |= was_given(at->json);
    csv |= was_given(at->csv);
    const Level* next = nullptr;
    for (const Level& inner : at->inner)
      if (inner.app->parsed()) next = &inner;
    if (next)
      for (const auto& [name, option] : at->arguments)
        if (was_given(option))
          return std::string(name) + " is not an option of `" + std::string(next->command->name) +
                 "`";
    at = next;
  }
  return json && csv ? "--json and --csv exclude each other" : "";
}

std::string command_names() {
  std::string names;
  for (const Command& command : commands())
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  return names;
}

// "berthctl objects inspect", as far as it was understood.
std::string path_of(const CLI::App& app) {
  std::string path = "berthctl";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

tl::unexpected<ExitCode> refuse_line(const CLI::App& app, const std::string& message,
                                     Console& console) {
  const std::string path = path_of(app);
  console.err << path << ": " << message << "\n  `" << path << " --help` shows what it accepts.\n";
  return tl::unexpected(ExitCode::kUsage);
}

}  // namespace

tl::expected<Invocation, ExitCode> parse_command_line(const std::vector<std::string>& arguments,
                                                      Console& console) {
  CLI::App app("berthctl shows what a Berth server holds, and acts on it.", "berthctl");
  const Level program = add_program(app);
  try {
    // CLI11 takes them off the end.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      app.exit(error, text, console.err);
      console.out << text.str() << (text.str().ends_with('\n') ? "" : "\n");
      return tl::unexpected(ExitCode::kOk);
    }
    const std::vector<std::string> unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty() && !unknown.front().starts_with('-'))
      return refuse_line(
          app, "\"" + unknown.front() + "\" is not a command; there are " + command_names(),
          console);
    return refuse_line(app, error.what(), console);
  }
  if (const std::string contradiction = contradiction_in(program); !contradiction.empty())
    return refuse_line(app, contradiction, console);
  Invocation invocation = InvocationReader().read(program);
  if (!invocation.command)
    return refuse_line(app, "no command was given; there are " + command_names(), console);
  return invocation;
}

}  // namespace berth::ctl
