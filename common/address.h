// Where something listens: TCP ("127.0.0.1:7420", "[::1]:7420", "node-3:7420") or a unix socket
// ("unix:/run/berth/w0.sock"). One parser for config files, options and environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/error.h"

namespace berth {

enum class AddressKind : uint8_t { kTcp, kUnix };

struct Address {
  AddressKind kind = AddressKind::kTcp;
  std::string host;   // without brackets; a number or a name
  uint16_t port = 0;  // 0: any free port, for listeners in tests
  std::string path;   // of a unix socket

  // 127.0.0.0/8, ::1, localhost, or a unix socket: what only this host can reach.
  bool is_local() const;
  // The form that parse_address accepts back; also gRPC's form for both kinds.
  std::string text() const;
};

// `name` is the key or option. Errors: kInvalidConfig with the accepted forms.
Result<Address> parse_address(std::string_view name, std::string_view text);

// What a listener demands of an address without TLS.
enum class Exposure : uint8_t { kLocalOnly, kInsecureAllowed };
// Errors: kInvalidConfig for plain TCP beyond this host, unless insecurity was asked for.
Result<> check_exposure(std::string_view name, const Address& address, Exposure exposure);

}  // namespace berth
