//! Tokens in the tables: a record each, by name.

use std::path::{Path, PathBuf};

use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::{Ended, Scope, Token};
use fjall::Readable;

use super::committer::{Put, View};
use super::instant::Instant;
use super::keys;
use super::own_files;
use super::record::{self, Counters};
use super::session_record;
use super::tables::failed;
use super::token_record::{decode, encode};
use crate::store::StoreError;
use crate::store::access::{KeptToken, TokenAdded, Tokens, added};

/// The name of the file below.
pub(super) const NEEDED: &str = "tokens-needed";

/// The file that says that calls need a token. It lies beside the journals, so that their loss opens the server to nobody.
pub(super) struct Needed(PathBuf);

impl Needed {
    /// That of a data directory.
    pub(super) fn of(dir: &Path) -> Self {
        Self(dir.join(NEEDED))
    }

    pub(super) fn is_said(&self) -> bool {
        // One that cannot be looked at is taken to be there.
        !matches!(self.0.try_exists(), Ok(false))
    }

    pub(super) fn say(&self) -> Result<(), StoreError> {
        if self.is_said() {
            return Ok(());
        }
        let text = b"Calls need a token, also where no token is left.\n";
        own_files::replace(&self.0, text).map(drop).map_err(|error| own_files::failed("make a token", &self.0, &error))
    }
}

/// Keeps a new token.
pub(super) fn add(view: &View<'_>, kept: &KeptToken, needed: &Needed) -> Result<(TokenAdded, Vec<Put>), StoreError> {
    let token = &kept.token;
    let key = keys::token(&token.name);
    let others = view.beginning_with(keys::TOKENS)?;
    let workspace = match &token.scope {
        Scope::All => None,
        Scope::One(workspace) => view.get(&keys::workspace(workspace))?,
    };
    let added = added(token, others.contains_key(&key), others.len(), |_| workspace.is_some());
    if added != TokenAdded::New {
        return Ok((added, Vec::new()));
    }
    needed.say()?;
    let count = Put::Record(keys::TOKEN_COUNT.to_vec(), session_record::encode_count(others.len() as u64 + 1));
    Ok((added, vec![Put::Record(key, encode(kept)), count]))
}

/// Ends a token.
pub(super) fn end(view: &View<'_>, name: &TokenName, ended: Ended) -> Result<(Option<Token>, Vec<Put>), StoreError> {
    let key = keys::token(name);
    let Some(record) = view.get(&key)? else { return Ok((None, Vec::new())) };
    let mut kept = decode(&record)?;
    if kept.token.ended.is_some() {
        return Ok((Some(kept.token), Vec::new()));
    }
    kept.token.ended = Some(ended);
    let record = encode(&kept);
    Ok((Some(kept.token), vec![Put::Record(key, record)]))
}

/// Creates a workspace, if there is none.
pub(super) fn create_workspace(view: &View<'_>, workspace: &WorkspaceId) -> Result<(bool, Vec<Put>), StoreError> {
    let key = keys::workspace(workspace);
    if view.get(&key)?.is_some() || view.known(workspace).is_some() {
        return Ok((false, Vec::new()));
    }
    let counters = Counters { open: Some(0), ..Counters::default() };
    Ok((true, vec![Put::Record(key, record::encode_counters(counters))]))
}

impl Instant<'_> {
    pub(super) fn tokens(&self) -> Result<Tokens, StoreError> {
        let mut found = Tokens::default();
        for entry in self.snapshot.prefix(&self.tables.records, keys::TOKENS) {
            let (key, value) = entry.into_inner().map_err(failed("list tokens"))?;
            match decode(&value) {
                Ok(kept) if keys::token(&kept.token.name) == *key => found.readable.push(kept),
                Ok(kept) => found.damaged.push(format!("a token has the record of token {}", kept.token.name)),
                Err(error) => found.damaged.push(error.to_string()),
            }
        }
        Ok(found)
    }
}
