//! Compares what an agent is to serve with what the user agreed to before, and asks when it differs.

use std::fmt::Write as _;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio_util::sync::CancellationToken;

use super::approval::Approval;
use super::error::AgentError;
use super::service::Service;
use crate::workspace::keep::agreement::{Agreement, Kept};
use crate::workspace::roots::workspace::Workspace;

/// Whether the agent may serve: the user agreed to the same server, workspace and roots before, or does so now. The first start
/// with these roots is an agreement. `false` when the agent is stopped before there is an answer.
///
/// # Errors
/// When the user says no, when nobody can be asked, or when the state directory cannot be used.
pub(super) async fn agree(
    local: &Workspace,
    service: &Service,
    approval: &Approval,
    stop: &CancellationToken,
) -> Result<bool, AgentError> {
    let wanted = Agreement::new(local, &service.server.url.to_string(), &service.workspace);
    let kept = wanted.compare(local)?;
    let is_other = !kept.others.is_empty() || !kept.damaged.is_empty();
    if is_other && !service.is_agreed {
        if let Some(failure) = damage(&kept) {
            return Err(AgentError::NotAgreed(Box::new(failure)));
        }
        let Some(person) = approval.person() else {
            let hint = "start the agent with --agree, or on a terminal, if it is to serve this from now on; otherwise start it as before";
            return Err(refused(&kept, &wanted, "no person can be asked", hint));
        };
        let question =
            format!("\nThis agent would serve something else than was agreed to.\n{}", change(&kept, &wanted));
        let is_agreed = tokio::select! {
            is_agreed = person.agrees(&question) => is_agreed,
            () = stop.cancelled() => return Ok(false),
        };
        if !is_agreed {
            let hint = "start the agent as before, or start it again and answer y";
            return Err(refused(&kept, &wanted, "the person at the terminal did not agree", hint));
        }
    }
    if is_other || kept.is_missing {
        wanted.put(local)?;
        tracing::info!(agreed = %wanted, "what this agent serves is kept; another server, workspace or root is asked about");
    }
    Ok(true)
}

/// Why agreements that cannot be read end the agent. What was agreed to is not known, so that nobody can compare it.
fn damage(kept: &Kept) -> Option<Failure> {
    let (path, damage) = kept.damaged.first()?;
    let message = format!("what the user agreed to serve cannot be read from {}: {damage}", path.display());
    let hint = "start the agent with --agree if the server, the workspace and the roots are the right ones; the file is then kept in \
                the directory damaged beside it";
    Some(Failure::new(Reason::ApprovalRequired, message).hint(hint))
}

fn refused(kept: &Kept, wanted: &Agreement, why: &str, hint: &str) -> AgentError {
    let others: Vec<_> = kept.others.iter().map(ToString::to_string).collect();
    let others = others.join("; and to ");
    let message = format!("the agent is not to serve {wanted}: the user agreed to {others}, and {why}");
    AgentError::NotAgreed(Box::new(Failure::new(Reason::ApprovalRequired, message).hint(hint)))
}

/// What was agreed to and what is to be served, in lines for a person.
fn change(kept: &Kept, wanted: &Agreement) -> String {
    let mut lines = String::new();
    for other in &kept.others {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "  agreed to: {other}");
    }
    let _ = writeln!(lines, "  now:       {wanted}");
    lines
}
