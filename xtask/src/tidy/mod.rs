//! What the compiler does not check: arrows between crates, who names what, requirement ids, house rules.

mod crates;
mod dependencies;
mod finding;
mod ids;
mod imports;
mod layers;
mod modules;
mod names;
mod pages;
mod rules;
mod tokens;

use anyhow::{Result, bail};

use crate::repo;

/// Other than checking.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the imports that form circles or break the layers, of the crates whose name holds this
    #[arg(long, value_name = "CRATE", num_args = 0..=1, default_missing_value = "")]
    arrows: Option<String>,
}

/// Does what the arguments ask for.
///
/// # Errors
///
/// Those of [`check`].
pub(crate) fn tidy(args: &Args) -> Result<()> {
    match &args.arrows {
        Some(part) => modules::print(&repo::texts()?, part),
        None => check(),
    }
}

/// Checks the repository and prints every finding.
///
/// # Errors
///
/// When there are findings, or the repository cannot be read.
pub(crate) fn check() -> Result<()> {
    let texts = repo::texts()?;
    let mut findings = crates::check()?;
    findings.extend(dependencies::check()?);
    findings.extend(ids::check(&texts)?);
    findings.extend(modules::check(&texts)?);
    findings.extend(pages::check(&texts));
    for text in &texts {
        findings.extend(names::check(text));
        findings.extend(rules::check(text));
    }
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found 1 thing to change"),
        count => bail!("tidy found {count} things to change"),
    }
}
