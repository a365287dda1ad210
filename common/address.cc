#include "common/address.h"

#include <arpa/inet.h>

#include <charconv>
#include <optional>

#include "common/text.h"
#include "common/unix_socket.h"

namespace berth {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

std::optional<uint16_t> port_of(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

bool is_ipv6(const std::string& host) {
  in6_addr number{};
  return inet_pton(AF_INET6, host.c_str(), &number) == 1;
}

// A number or a DNS name; not a check of its existence.
bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 && host[0] != '-' &&
         host.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789.-_") == std::string_view::npos;
}

std::optional<Address> tcp_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = port_of(text.substr(colon + 1));
  if (!port) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (bracketed ? !is_ipv6(std::string(host)) : !is_host(host)) return std::nullopt;
  return Address{AddressKind::kTcp, std::string(host), *port, ""};
}

std::optional<Address> unix_address(std::string_view path) {
  const bool fits = path.size() > 1 && path[0] == '/' && path.size() <= kUnixPathLengthMax &&
                    path.find('\0') == std::string_view::npos;
  if (!fits) return std::nullopt;
  return Address{AddressKind::kUnix, "", 0, std::string(path)};
}

}  // namespace

bool Address::is_local() const {
  if (kind == AddressKind::kUnix || host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string Address::text() const {
  if (kind == AddressKind::kUnix) return std::string(kUnixPrefix) + path;
  const bool colons = host.find(':') != std::string::npos;
  return (colons ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view name, std::string_view text) {
  const bool is_unix = text.substr(0, kUnixPrefix.size()) == kUnixPrefix;
  const auto address = is_unix ? unix_address(text.substr(kUnixPrefix.size())) : tcp_address(text);
  if (address) return *address;
  return refuse(
      Reason::kInvalidConfig,
      name_and_value(name, text) +
          ": not an address; accepted: HOST:PORT, [IPV6]:PORT, or unix:/PATH of at most " +
          std::to_string(kUnixPathLengthMax) + " characters");
}

Result<> check_exposure(std::string_view name, const Address& address, Exposure exposure) {
  if (address.is_local() || exposure == Exposure::kInsecureAllowed) return {};
  return refuse(Reason::kInvalidConfig,
                name_and_value(name, address.text()) +
                    ": plain TCP that other hosts can reach; accepted: a loopback address, "
                    "unix:/PATH, or the option --insecure");
}

}  // namespace berth
