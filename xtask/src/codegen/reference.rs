//! The reference of failures, printed by an example of `aptix-model` from its own catalogue.

use anyhow::{Context, Result};

use super::generated::Generated;
use crate::repo;

/// Runs the example and takes what it prints.
pub(super) fn generate() -> Result<Vec<Generated>> {
    let run = ["run", "--quiet", "--locked", "--package", "aptix-model", "--example", "error_reference"];
    let text = repo::capture(repo::cargo().args(run)).context("failed to print the reference of failures")?;
    Ok(vec![Generated { path: "docs/errors.md".to_owned(), content: text.into_bytes() }])
}
