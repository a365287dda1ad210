// Who may speak: a session's token, compared with what is installed. Every call that names a caller
// comes through here first; whether its incarnation is still the present one is the directory's
// decision.
#pragma once

#include "berth/v1/directory.pb.h"
#include "common/error.h"
#include "server/directory/commands.h"
#include "server/directory/directory.h"

namespace berth::rpc {

// The time that it takes tells nothing about where two tokens differ.
bool is_same_token(const Token& a, const Token& b);

// Errors: invalid_argument (no caller, no session, a token of another length), unknown_session,
// permission_denied (a client session: its worker speaks for it), wrong_token.
Result<Caller> authenticate(const Directory& directory, const v1::Caller& caller);

}  // namespace berth::rpc
