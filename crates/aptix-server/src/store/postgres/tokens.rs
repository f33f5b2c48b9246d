//! Tokens: a record each, by name.

use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::{Ended, Scope, Token};

use super::database::{Database, Transaction};
use super::fault::Fault;
use super::numbers::get;
use crate::store::StoreError;
use crate::store::access::{KeptToken, TOKENS, TokenAdded, Tokens, added};
use crate::store::fleet::Hint;
use crate::store::records::token_record::{decode, encode};

/// Counts that tokens changed.
const COUNT: &str = "UPDATE store_facts SET tokens = tokens + 1";

/// Every token.
pub(super) async fn all(database: &Database) -> Result<Tokens, StoreError> {
    let mut found = Tokens::default();
    let rows = database
        .read(
            "SELECT tokens_needed, NULL, NULL::bytea FROM store_facts \
        UNION ALL SELECT NULL, name, record FROM tokens ORDER BY 2 NULLS FIRST",
            &[],
        )
        .await?;
    for row in &rows {
        let needed: Option<bool> = get(row, 0).map_err(Fault::into_error)?;
        if let Some(needed) = needed {
            found.are_needed = needed;
            continue;
        }
        let (name, record): (&str, &[u8]) = read(row)?;
        match decode(record) {
            Ok(kept) if kept.token.name.as_str() == name => found.readable.push(kept),
            Ok(kept) => found.damaged.push(format!("a token has the record of token {}", kept.token.name)),
            Err(error) => found.damaged.push(error.to_string()),
        }
    }
    Ok(found)
}

fn read(row: &tokio_postgres::Row) -> Result<(&str, &[u8]), StoreError> {
    let both = || Ok::<_, Fault>((get(row, 1)?, get(row, 2)?));
    both().map_err(Fault::into_error)
}

/// Keeps a new token, unless its name was ever used, it is for a workspace that does not exist, or another token is for the same
/// certificate.
pub(super) async fn add(database: &Database, kept: &KeptToken) -> Result<TokenAdded, Fault> {
    let transaction = database.begin().await?;
    let workspace = match &kept.token.scope {
        Scope::All => None,
        Scope::One(workspace) => Some(workspace.as_str()),
    };
    let is_known = "SELECT 1 FROM workspaces WHERE name = $1 AND known AND NOT deleting FOR SHARE";
    let has_workspace = transaction.row(is_known, &[&workspace]).await?.is_some();
    // This row is locked by all that make a token: none is made between the count and the insert.
    transaction.change("UPDATE store_facts SET age = age", &[]).await?;
    let counted = "SELECT EXISTS (SELECT FROM tokens WHERE name = $1), (SELECT count(*) FROM tokens)";
    let counted = transaction.row(counted, &[&kept.token.name.as_str()]).await?;
    let counted = counted.ok_or_else(|| Fault::Failed("the tokens were not counted".to_owned()))?;
    let others = usize::try_from(get::<i64>(&counted, 1)?).unwrap_or(TOKENS);
    let added = added(&kept.token, get(&counted, 0)?, others, |_| has_workspace);
    let added = match added {
        TokenAdded::New => with_proof(&transaction, kept).await?.map_or(added, TokenAdded::CertificateUsed),
        refused => refused,
    };
    if added != TokenAdded::New {
        transaction.roll_back().await?;
        return Ok(added);
    }
    transaction.change("UPDATE store_facts SET tokens_needed = true, tokens = tokens + 1", &[]).await?;
    let insert = "INSERT INTO tokens (name, workspace, proof, record) VALUES ($1, $2, $3, $4)";
    let (name, proof) = (kept.token.name.as_str(), kept.digest.as_bytes().as_slice());
    transaction.change(insert, &[&name, &workspace, &proof, &&*encode(kept)]).await?;
    transaction.commit().await?;
    database.mouth.tell(Hint::Tokens);
    Ok(added)
}

/// The name of a token of use that is for the certificate of a new one.
async fn with_proof(transaction: &Transaction<'_>, new: &KeptToken) -> Result<Option<TokenName>, Fault> {
    if new.token.certificate.is_none() {
        return Ok(None);
    }
    let sql = "SELECT record FROM tokens WHERE proof = $1";
    for row in transaction.rows(sql, &[&new.digest.as_bytes().as_slice()]).await? {
        // A damaged record is of no use to its holder.
        if let Ok(kept) = decode(get(&row, 0)?)
            && kept.token.is_good(new.token.created)
        {
            return Ok(Some(kept.token.name));
        }
    }
    Ok(None)
}

/// Ends a token, unless it has ended.
pub(super) async fn end(database: &Database, name: &TokenName, ended: Ended) -> Result<Option<Token>, Fault> {
    let transaction = database.begin().await?;
    let found = transaction.row("SELECT record FROM tokens WHERE name = $1 FOR UPDATE", &[&name.as_str()]).await?;
    let Some(row) = found else {
        transaction.roll_back().await?;
        return Ok(None);
    };
    let mut kept = decode(get(&row, 0)?)?;
    if kept.token.ended.is_some() {
        transaction.roll_back().await?;
        return Ok(Some(kept.token));
    }
    kept.token.ended = Some(ended);
    keep(&transaction, &kept).await?;
    transaction.change(COUNT, &[]).await?;
    transaction.commit().await?;
    database.mouth.tell(Hint::Tokens);
    Ok(Some(kept.token))
}

/// Ends the tokens for one workspace alone; answers the names of those that had not ended.
pub(super) async fn end_of(
    transaction: &Transaction<'_>,
    workspace: &WorkspaceId,
    ended: Ended,
) -> Result<Vec<TokenName>, Fault> {
    let sql = "SELECT record FROM tokens WHERE workspace = $1 ORDER BY name FOR UPDATE";
    let mut names = Vec::new();
    for row in transaction.rows(sql, &[&workspace.as_str()]).await? {
        let Ok(mut kept) = decode(get(&row, 0)?) else { continue };
        if kept.token.ended.is_none() {
            kept.token.ended = Some(ended);
            keep(transaction, &kept).await?;
            names.push(kept.token.name);
        }
    }
    transaction.change(COUNT, &[]).await?;
    Ok(names)
}

async fn keep(transaction: &Transaction<'_>, kept: &KeptToken) -> Result<(), Fault> {
    let sql = "UPDATE tokens SET record = $2 WHERE name = $1";
    transaction.change(sql, &[&kept.token.name.as_str(), &&*encode(kept)]).await.map(drop)
}
