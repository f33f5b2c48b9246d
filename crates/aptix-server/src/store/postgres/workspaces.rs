//! Workspaces and their leases, and the age of the store.

use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::WorkspaceId;

use super::database::Database;
use super::fault::Fault;
use super::numbers::{column, get, number};
use super::rows::{Decided, Needs, Put, Rows, Workspace};
use crate::store::Lease;
use crate::store::records::record;
use crate::store::retention::Age;

/// What [`create`] decides by.
pub(super) fn needs(workspace: &WorkspaceId, needs: &mut Needs) {
    needs.lock(workspace, true);
}

/// Creates a workspace, if there is none.
pub(super) fn create(workspace: &WorkspaceId, rows: &Rows) -> Decided<bool> {
    let counters = rows.counters(workspace)?;
    if counters.is_known {
        return Ok((false, Vec::new()));
    }
    let created = Workspace { is_known: true, ..counters };
    Ok((true, vec![Put::Workspace(workspace.clone(), Box::new(created))]))
}

/// A lease that is asked for.
pub(super) struct Grant {
    pub(super) workspace: WorkspaceId,
    pub(super) secret: Sha256Digest,
    pub(super) roots: Vec<String>,
}

impl Grant {
    pub(super) fn needs(&self, needs: &mut Needs) {
        needs.lock(&self.workspace, true);
    }
}

/// Grants the next lease; answers its epoch.
pub(super) fn grant(grant: &Grant, rows: &Rows) -> Decided<u64> {
    let counters = rows.counters(&grant.workspace)?;
    let epoch = counters.lease.epoch + 1;
    let granted = Workspace {
        is_known: true,
        lease: Lease { epoch, secret: Some(grant.secret) },
        roots: Some(record::encode_texts(&grant.roots).to_vec()),
        ..counters
    };
    Ok((epoch, vec![Put::Workspace(grant.workspace.clone(), Box::new(granted))]))
}

/// Adds to the age of the store.
pub(super) async fn grow_older(database: &Database, passed: Option<Duration>) -> Result<Age, Fault> {
    let transaction = database.begin().await?;
    let row = transaction.row("SELECT age FROM store_facts FOR UPDATE", &[]).await?;
    let row = row.ok_or_else(|| Fault::Failed("the row of the store's age is missing".to_owned()))?;
    let age = Age(number(get(&row, 0)?)).after(passed.unwrap_or_default());
    transaction.change("UPDATE store_facts SET age = $1", &[&column(age.0)]).await?;
    transaction.commit().await?;
    Ok(age)
}
