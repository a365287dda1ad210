// Addresses of listeners and peers.
#include "common/address.h"

#include <catch2/catch.hpp>

namespace berth {

TEST_CASE("an address prints as it is written", "[common][address]") {
  const std::string text =
      GENERATE(as<std::string>(), "127.0.0.1:7420", "0.0.0.0:0", "[::1]:7420", "localhost:65535",
               "node-3.example:7420", "unix:/run/berth/w0.sock");
  CAPTURE(text);
  CHECK(parse_address("listen", text).value().text() == text);
}

TEST_CASE("what is no address is refused with the accepted forms", "[common][address]") {
  const std::string text =
      GENERATE(as<std::string>(), "", "7420", ":7420", "host", "host:", "host:x", "host:-1",
               "host:65536", "host:7420 ", "::1:7420", "[::1]", "[host]:1", "a b:1",
               "http://host:1", "-x:1", "unix:", "unix:relative", "unix:/" + std::string(200, 'x'));
  CAPTURE(text);
  const auto address = parse_address("grpc.listen", text);
  REQUIRE_FALSE(address.has_value());
  CHECK(address.error().reason == Reason::kInvalidConfig);
  CHECK(address.error().message.find("accepted: HOST:PORT, [IPV6]:PORT, or unix:/PATH") !=
        std::string::npos);
}

TEST_CASE("only what this host alone can reach is local", "[common][address]") {
  const auto [text, local] = GENERATE(table<std::string, bool>({
      {"127.0.0.1:1", true},
      {"127.8.9.1:1", true},
      {"[::1]:1", true},
      {"localhost:1", true},
      {"unix:/s", true},
      {"0.0.0.0:1", false},
      {"[::]:1", false},
      {"10.0.0.1:1", false},
      {"node-3:1", false},
      {"localhost.example:1", false},
  }));
  CAPTURE(text);
  CHECK(parse_address("a", text)->is_local() == local);
}

TEST_CASE("plain TCP beyond this host needs the option that says so", "[common][address]") {
  const Address open = parse_address("grpc.listen", "0.0.0.0:7420").value();
  const auto refused = check_exposure("grpc.listen", open, Exposure::kLocalOnly);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("--insecure") != std::string::npos);
  CHECK(check_exposure("grpc.listen", open, Exposure::kInsecureAllowed).has_value());
  const Address local = parse_address("grpc.listen", "127.0.0.1:7420").value();
  CHECK(check_exposure("grpc.listen", local, Exposure::kLocalOnly).has_value());
}

}  // namespace berth
