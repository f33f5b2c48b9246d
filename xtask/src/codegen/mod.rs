//! Files that are committed but made by a program, so that a build needs no generator and a reader no build.

mod generated;
mod methods;
mod protocol;

use anyhow::{Context, Result, bail};

use self::generated::{Generated, stale};
use crate::{register, repo};

/// Writes every generated file that is not yet what it must be.
///
/// # Errors
///
/// When a source does not compile or a file cannot be written.
pub(crate) fn write() -> Result<()> {
    for generate in GENERATORS {
        // One after the other: the code of the protocol may have to be mended before anything else compiles.
        for file in stale(generate()?) {
            repo::write(&file.path, &file.content)?;
            println!("generated {}", file.path);
        }
    }
    Ok(())
}

/// Fails when a committed file is not what [`write()`] would make of its source.
///
/// # Errors
///
/// Names every file that is out of date, and how to mend it.
pub(crate) fn check() -> Result<()> {
    let mut paths = Vec::new();
    for generate in GENERATORS {
        paths.extend(stale(generate()?).into_iter().map(|file| file.path));
    }
    if paths.is_empty() {
        return Ok(());
    }
    bail!(
        "out of date: {}\nrun `cargo xtask codegen` and commit the result; what a program writes is not edited by hand",
        paths.join(", ")
    )
}

const GENERATORS: [fn() -> Result<Vec<Generated>>; 3] = [protocol::generate, scenarios, reference];

/// The register of requirements with the names of the tests.
fn scenarios() -> Result<Vec<Generated>> {
    let content = register::filled(&repo::read(register::PATH)?, &repo::texts()?);
    Ok(vec![Generated { path: register::PATH.to_owned(), content: content.into_bytes() }])
}

/// The reference of failures, printed by an example of `aptix-model` from its own catalogue.
fn reference() -> Result<Vec<Generated>> {
    let run = ["run", "--quiet", "--locked", "--package", "aptix-model", "--example", "error_reference"];
    let text = repo::capture(repo::cargo().args(run)).context("failed to print the reference of failures")?;
    Ok(vec![Generated { path: "docs/errors.md".to_owned(), content: text.into_bytes() }])
}
