//! Files that are committed but made by a program, so that a build needs no generator.

mod protocol;

use std::fs;

use anyhow::{Result, bail};

use crate::repo;

/// A committed file and what it must hold.
pub(crate) struct Generated {
    path: String,
    content: Vec<u8>,
}

/// Writes every generated file that is not yet what it must be.
///
/// # Errors
///
/// When a source does not compile or a file cannot be written.
pub(crate) fn write() -> Result<()> {
    for file in stale()? {
        repo::write(&file.path, &file.content)?;
        println!("generated {}", file.path);
    }
    Ok(())
}

/// Fails when a committed file is not what [`write`] would make of its source.
///
/// # Errors
///
/// Names every file that is out of date, and how to mend it.
pub(crate) fn check() -> Result<()> {
    let stale: Vec<String> = stale()?.into_iter().map(|file| file.path).collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!(
        "out of date: {}\nrun `cargo xtask codegen` and commit the result; generated files are not edited by hand",
        stale.join(", ")
    )
}

fn stale() -> Result<Vec<Generated>> {
    let mut files = protocol::generate()?;
    files.retain(|file| fs::read(repo::root().join(&file.path)).ok().as_ref() != Some(&file.content));
    Ok(files)
}
