#include "tests/integration/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <sstream>

namespace berth::testing {

UniqueFd connect_to(uint16_t port) {
  UniqueFd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(peer.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return peer;
}

HttpAnswer http_get(uint16_t port, const std::string& path) {
  const UniqueFd peer = connect_to(port);
  if (!peer) return {};
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (send(peer.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string text;
  char buffer[65536];
  for (ssize_t count; (count = recv(peer.get(), buffer, sizeof buffer, 0)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  const size_t body = text.find("\r\n\r\n");
  if (body == std::string::npos || text.size() < 12) return {};
  return {std::stoi(text.substr(9, 3)), text.substr(body + 4)};
}

Metrics scrape(uint16_t port) {
  const HttpAnswer answer = http_get(port, "/metrics");
  REQUIRE(answer.status == 200);
  Metrics metrics;
  std::istringstream lines(answer.body);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    if (line.starts_with("#") || space == std::string::npos) continue;
    metrics[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return metrics;
}

}  // namespace berth::testing
