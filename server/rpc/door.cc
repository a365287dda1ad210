#include "server/rpc/door.h"

#include "common/text.h"
#include "server/rpc/fields.h"

namespace berth::rpc {

bool is_same_token(const Token& a, const Token& b) {
  return ((a.high ^ b.high) | (a.low ^ b.low)) == 0;
}

Result<Caller> authenticate(const Directory& directory, const v1::Caller& wire) {
  Fields fields;
  const Caller caller{fields.id<SessionId>("caller.session", wire.session()), wire.incarnation()};
  const Token token = fields.id128("caller.token", wire.token(), Given::kRequired);
  if (fields.failed()) return fields.checked(caller);
  const auto* session = directory.find<Session>(caller.session);
  if (!session)
    return refuse(Reason::kUnknownSession,
                  "caller.session = " + to_text(caller.session) + ": no such session");
  if (!is_same_token(session->token, token))
    return refuse(Reason::kWrongToken,
                  "caller.token: is not that of session " + to_text(caller.session));
  if (session->role != Role::kWorker)
    return refuse(Reason::kPermissionDenied, "caller.session = " + to_text(caller.session) +
                                                 ": is a client; its worker speaks for it");
  return caller;
}

}  // namespace berth::rpc
