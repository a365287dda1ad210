// A command as a description: its words, its arguments, and the function that makes its view. The
// command line parser, --help and shell completion are all derived from this, so they cannot
// disagree.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "server/ctl/admin_client.h"
#include "server/ctl/arguments.h"
#include "server/ctl/console.h"
#include "server/ctl/view.h"

namespace berth::ctl {

enum class Arity : uint8_t {
  kOne,
  kOptional,
  kMany,  // one or more
  kAny,   // none or more
};

struct OptionSpec {
  std::string_view name;   // "--pool"
  std::string_view value;  // what stands for its value in --help; empty: a flag
  std::string_view help;
  std::vector<std::string_view> accepted = {};  // the fixed words that it takes; empty: any text
  Arity arity = Arity::kOne;                    // kOne, or kMany: several values behind it
};

struct PositionalSpec {
  std::string_view name;  // "SESSION"
  std::string_view help;
  Arity arity = Arity::kOne;
};

enum class Format : uint8_t { kTable, kCsv, kJson };

struct Outcome {
  View view;
  ExitCode exit_code = ExitCode::kOk;
  std::vector<std::string> notes = {};  // sentences for stderr, so that they never mix with data
};

enum class CommandKind : uint8_t {
  kView,    // reads; may be watched
  kAction,  // changes something, or is too heavy to repeat
  kStream,  // writes as things happen
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view details;  // what --help says beyond it; may be empty
  std::string_view example;  // one line per example
  std::vector<PositionalSpec> positionals;
  std::vector<OptionSpec> options;
  CommandKind kind = CommandKind::kView;
  // kView and kAction: makes the view.
  Answer<Outcome> (*produce)(AdminClient& client, const Arguments& arguments) = nullptr;
  // kStream: writes until the stream ends or the console says stop.
  Answer<ExitCode> (*stream)(AdminClient& client, const Arguments& arguments, Format format,
                             Console& console) = nullptr;
  std::vector<Command> subcommands = {};
  Duration timeout = seconds(5);  // unless --timeout says otherwise
};

// Every command of berthctl, in the order of --help.
std::span<const Command> commands();

}  // namespace berth::ctl
