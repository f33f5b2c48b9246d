//! The commands about workspaces: they create and list them, and delete one once its name was typed.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use aptix_model::id::WorkspaceId;
use aptix_server::dispatcher::deletion::{Deleted, Preview};
use aptix_server::service::owner::{Owner, Unanswered};
use aptix_server::store::deletion::Deletion;

use super::{New, Order, ask, print, say};

#[derive(clap::Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Creates a workspace, unless there is one already
    Create {
        /// Its id
        id: WorkspaceId,
        #[command(flatten)]
        order: Order,
    },
    /// Deletes a workspace with everything that the server keeps of it, and revokes the tokens for it alone
    Delete {
        /// Its id
        id: WorkspaceId,
        /// Delete it without a question: without a terminal this is required
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        order: Order,
    },
    /// Lists all workspaces
    List {
        #[command(flatten)]
        order: Order,
    },
}

/// Carries out a command about workspaces.
///
/// # Errors
/// When it is refused, or the data directory cannot be used.
pub(crate) async fn workspace(command: WorkspaceCommand) -> anyhow::Result<ExitCode> {
    match command {
        WorkspaceCommand::Create { id, order } => {
            let is_new = ask(&order, New::Made, async |owner| owner.create_workspace(&id).await).await?;
            say(&format!("{} workspace {id}", if is_new { "created" } else { "there is already a" }));
        }
        WorkspaceCommand::Delete { id, yes, order } => return delete(id, yes, &order).await,
        WorkspaceCommand::List { order } => {
            print(&ask(&order, New::Read, async |owner| owner.list_workspaces().await).await?)?
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes a workspace.
///
/// # Errors
/// When the server refuses, the name that was typed is another one, or the data directory cannot be used.
async fn delete(id: WorkspaceId, yes: bool, order: &Order) -> anyhow::Result<ExitCode> {
    if !yes && !std::io::stdin().is_terminal() {
        say(&format!(
            "failed to delete workspace {id}: it has to be confirmed, and there is no terminal; hint: add --yes to delete it without a question"
        ));
        return Ok(ExitCode::from(2));
    }
    let deleted = ask(order, New::Refused, async |owner| match delete_confirmed(owner, &id, yes).await {
        Err(Unanswered::Refused(why)) => Err(Unanswered::Refused(explained(&id, why))),
        answer => answer,
    })
    .await?;
    print(&[line(&id, &deleted)])?;
    Ok(ExitCode::SUCCESS)
}

/// Deletes a workspace, once its name was typed unless that is not asked for.
async fn delete_confirmed(owner: &mut Owner, id: &WorkspaceId, yes: bool) -> Result<Deleted, Unanswered> {
    let has_begun = if yes { false } else { confirm(owner, id).await? };
    owner.delete_workspace(id, has_begun).await
}

/// Why a workspace was not deleted; if there is none of this id, with the command that lists those that exist.
fn explained(id: &WorkspaceId, why: String) -> String {
    let is_absent = why.contains(&format!("there is no workspace {id}"));
    if is_absent { format!("there is no workspace {id}; hint: see `aptix-server workspace list`") } else { why }
}

/// Asks for the name of the workspace, unless its deletion has begun already, which is answered.
async fn confirm(owner: &mut Owner, id: &WorkspaceId) -> Result<bool, Unanswered> {
    let preview = owner.preview_deletion(id).await?;
    if preview.has_begun {
        return Ok(true);
    }
    let question = question(id, &preview);
    let typed = tokio::task::spawn_blocking(move || read_answer(&question)).await;
    let typed = typed.map_err(std::io::Error::other).and_then(|typed| typed);
    match typed {
        Ok(typed) if typed == id.as_str() => Ok(false),
        Ok(_) => Err(Unanswered::Refused(format!("workspace {id} was not deleted: its name was not typed"))),
        Err(error) => Err(Unanswered::Refused(format!("workspace {id} was not deleted: no answer was read: {error}"))),
    }
}

fn read_answer(question: &str) -> std::io::Result<String> {
    let mut err = std::io::stderr().lock();
    write!(err, "{question}")?;
    err.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// What is asked on the terminal.
fn question(id: &WorkspaceId, preview: &Preview) -> String {
    let Preview { bytes, open_batches, named, .. } = preview;
    let listed = named.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let listed = match named.len() as u64 {
        0 => String::new(),
        count if count < *open_batches => format!(", among them {listed}"),
        _ => format!(": {listed}"),
    };
    format!(
        "workspace {id} stores {bytes} bytes and has {open_batches} open batches{listed}\n\
         all of it is deleted and cannot be restored; the tokens for it alone are revoked. Type {id} to delete it: "
    )
}

/// What was deleted, in a line.
fn line(id: &WorkspaceId, deleted: &Deleted) -> String {
    let Deletion { batches, bytes, open_batches, .. } = deleted.deletion;
    let tokens = deleted.tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let tokens = if tokens.is_empty() { String::new() } else { format!("; revoked tokens: {tokens}") };
    format!("deleted workspace {id}: {batches} batches, {open_batches} of them open, and {bytes} bytes{tokens}")
}

#[cfg(test)]
mod tests {
    use aptix_model::id::{BatchId, Uuid};

    use super::*;

    #[test]
    fn the_question_names_open_batches_and_says_when_there_are_more() {
        let id = "w".parse().unwrap();
        let named = vec![BatchId(Uuid::from_u128(1)), BatchId(Uuid::from_u128(2))];
        let list = named.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let asked = |open_batches, named: &[BatchId]| {
            question(&id, &Preview { has_begun: false, bytes: 9, open_batches, named: named.to_vec() })
        };
        assert!(asked(0, &[]).starts_with("workspace w stores 9 bytes and has 0 open batches\n"));
        assert!(asked(2, &named).contains(&format!("2 open batches: {list}\n")));
        assert!(asked(3, &named).contains(&format!("3 open batches, among them {list}\n")));
        assert!(asked(3, &[]).contains("3 open batches\n") && asked(3, &[]).ends_with("Type w to delete it: "));
    }
}
