// berthd's configuration: every key, its default, its bounds and how it goes with the others.
// deploy/berthd.toml is the same as text. Constant while the server runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/address.h"
#include "common/config.h"
#include "common/error.h"
#include "common/log.h"
#include "common/rpc_server.h"
#include "server/rpc/backend.h"
#include "server/sequencer/sequencer.h"

namespace berth {

inline constexpr const char* kServerConfigDefault = "/etc/berth/berthd.toml";
inline constexpr const char* kStateDirectoryDefault = "/var/lib/berth";

struct ServerConfig {
  std::vector<RpcListener> listeners;
  std::optional<Address> http;  // nothing: off
  std::string state_directory;
  log::Level log_level = log::Level::kInfo;
  uint64_t memtable_bytes = 0;
  uint32_t open_files_max = 0;  // 0: a share of the process's limit
  SequencerConfig sequencer;
  rpc::RpcConfig rpc;
};

// What the command line and the environment say beside the file.
struct ServerOverrides {
  std::string state_directory;  // default of server.state_directory: $STATE_DIRECTORY
  bool insecure = false;        // --insecure
};

// Asks for every key. Mistakes are collected in `config`; its finish() reports them, and only then
// the result means anything.
ServerConfig read_server_config(Config& config, const ServerOverrides& overrides);

std::string_view name_of(Durability durability);

}  // namespace berth
