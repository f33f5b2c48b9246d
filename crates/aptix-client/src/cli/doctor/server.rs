//! Checks of a server: whether it can be reached, proves who it is, accepts the token, and has the workspace.

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::reason::Reason;

use crate::connection::{CallError, Connection, Server, ServerUrl, check_token};

use super::super::token::TokenArgs;
use super::finding::{Finding, Subject};

/// Checks the token, then the server, then the workspace: each as far as what comes before it is in order.
pub(super) async fn check(url: &ServerUrl, workspace: Option<&WorkspaceId>, token: &TokenArgs) -> Vec<Finding> {
    let (source, found) = token.look(url);
    let subject = Subject("token", Some(source));
    let has_token = match found {
        Ok(has_token) => has_token,
        Err(failure) => return vec![subject.failed(failure, "keep a token with `aptix login`")],
    };
    let of_token = subject.ok(if has_token { "can be read" } else { "does not exist; calls are made without a token" });
    let server = token.server(url);
    let of_server = match check_token(&server).await {
        Ok(()) => accepted(url, has_token),
        Err(error) => return vec![of_token, refused(Subject("server", Some(url.to_string())), error)],
    };
    let mut found = vec![of_token, of_server];
    if let Some(workspace) = workspace {
        found.push(check_workspace(&server, workspace).await);
    }
    found
}

/// A workspace of which no server is named.
pub(super) fn check_nowhere(workspace: &WorkspaceId) -> Finding {
    let subject = Subject("workspace", Some(workspace.to_string()));
    subject.warning("not checked: no server is named", "name its server with --server URL or in APTIX_SERVER")
}

fn accepted(url: &ServerUrl, has_token: bool) -> Finding {
    let subject = Subject("server", Some(url.to_string()));
    let answers = if has_token { "answers and accepts the token" } else { "answers without a token" };
    if url.is_secure() {
        return subject.ok(format!("{answers}, over TLS"));
    }
    if url.is_loopback() {
        return subject.ok(format!("{answers}, on this machine"));
    }
    let message = format!("{answers}, without TLS: others can read and change what is sent");
    subject.warning(message, "use the server's https:// address, or an SSH tunnel")
}

fn refused(subject: Subject, error: CallError) -> Finding {
    if let CallError::Unreachable { why, .. } = error {
        return subject.problem(
            format!("out of reach: {why}"),
            "start it there, for example with `aptix-server --listen 127.0.0.1:7420`, or name another with --server",
        );
    }
    let failures = error.into_failures();
    let failure = failures.into_iter().next().unwrap_or_else(|| Failure::new(Reason::Internal, "no reason was given"));
    let hint = match failure.reason {
        Reason::Unauthenticated | Reason::PermissionDenied => {
            "have the server's operator make a token with `aptix-server token create`, and keep it with `aptix login`"
        }
        _ => "see that the server runs, and that --server names it",
    };
    subject.failed(failure, hint)
}

async fn check_workspace(server: &Server, workspace: &WorkspaceId) -> Finding {
    let subject = Subject("workspace", Some(workspace.to_string()));
    let served = async { Connection::open(server, workspace).await?.is_served().await };
    match served.await {
        Ok(true) => subject.ok("an agent serves it"),
        Ok(false) => subject.warning(
            "no agent serves it: batches wait",
            format!("run `aptix agent --server {} --workspace {workspace}`", server.url),
        ),
        Err(error) if error.reason() == Some(Reason::NotFound) => subject.warning(
            "does not exist yet",
            format!("run `aptix-server workspace create {workspace}` where the server runs"),
        ),
        Err(error) => refused(subject, error),
    }
}
