#include "common/http_message.h"

#include <exception>
#include <optional>

namespace berth {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return status < 500 ? "Refused" : "Internal Server Error";
  }
}

struct RequestLine {
  std::string_view method;
  HttpRequest request;
};

// "GET /metrics?x=1 HTTP/1.1"
std::optional<RequestLine> parse_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool known_version = line.substr(last + 1).substr(0, 7) == "HTTP/1.";
  if (!known_version || target.empty() || target[0] != '/' ||
      target.find(' ') != std::string_view::npos)
    return std::nullopt;
  const size_t mark = target.find('?');
  RequestLine parsed{line.substr(0, first), {std::string(target.substr(0, mark)), ""}};
  if (mark != std::string_view::npos) parsed.request.query = target.substr(mark + 1);
  return parsed;
}

std::string render(const HttpResponse& response, bool with_body) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text += status_text(response.status);
  text += "\r\nContent-Type: " + response.content_type;
  text += "\r\nContent-Length: " + std::to_string(response.body.size());
  if (response.status == 405) text += "\r\nAllow: GET, HEAD";
  text += "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close";
  text += kHeadEnd;
  if (with_body) text += response.body;
  return text;
}

HttpResponse refusal(int status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", text + "\n"};
}

HttpResponse not_found(const HttpRoutes& routes) {
  std::string text = "no such page; there are:";
  for (const auto& [path, handler] : routes) text += " " + path;
  return refusal(404, text);
}

// A scrape that runs out of memory must not end the process.
HttpResponse run(const HttpHandler& handler, const HttpRequest& request) {
  try {
    return handler(request);
  } catch (const std::exception& e) {
    return refusal(500, std::string("the page could not be made: ") + e.what());
  }
}

}  // namespace

bool is_http_head_complete(std::string_view bytes) {
  return bytes.size() > kHttpRequestBytesMax || bytes.find(kHeadEnd) != std::string_view::npos;
}

std::string answer_http(std::string_view request, const HttpRoutes& routes) {
  if (request.substr(0, kHttpRequestBytesMax).find(kHeadEnd) == std::string_view::npos)
    return render(refusal(431, "the request is too large"), true);
  const auto line = parse_request_line(request.substr(0, request.find("\r\n")));
  if (!line) return render(refusal(400, "not an HTTP/1 request"), true);
  if (line->method != "GET" && line->method != "HEAD")
    return render(refusal(405, "only GET and HEAD"), true);
  const auto route = routes.find(line->request.path);
  const HttpResponse response =
      route == routes.end() ? not_found(routes) : run(route->second, line->request);
  return render(response, line->method == "GET");
}

}  // namespace berth
