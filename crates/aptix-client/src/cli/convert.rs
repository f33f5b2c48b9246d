//! `aptix convert`: one document's edit, written in another dialect. What is printed was parsed and planned again, and
//! gives the same bytes.

use std::path::Path;

use aptix_engine::express::{self, Form};
use aptix_engine::plan::BatchPlan;
use aptix_model::documents::terms::in_terms_of;
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use clap::builder::TypedValueParser;

use crate::apply::{Refusal, look, refuse_document};
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::document::DocumentArgs;
use super::exit::{Exit, Refused};
use super::home_dirs::HomeDirs;
use super::output;
use super::words::Words;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The directory whose files the edit is about, and the name docPaths know it by
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) root: RootSpec,
    /// The dialect to write: line-patch, search-patch, structured-patch, git-patch or file-bundle
    #[arg(long, value_parser = targets(), hide_possible_values = true)]
    to: Target,
    #[command(flatten)]
    document: DocumentArgs,
}

/// A dialect that can be written, and the form of its edit; a diff has a form of its own.
#[derive(Clone, Copy, Debug)]
struct Target(Dialect, Option<Form>);

/// The names of the dialects that can be written.
const WRITTEN: [&str; 5] = ["line-patch", "search-patch", "structured-patch", "git-patch", "file-bundle"];

fn targets() -> impl TypedValueParser<Value = Target> {
    Words::new(target, WRITTEN)
}

fn target(text: &str) -> Result<Target, String> {
    let expected = || format!("expected one of {}", WRITTEN.join(", "));
    let dialect = Dialect::from_name(text).ok_or_else(|| format!("unknown dialect {text:?}, {}", expected()))?;
    let form = match dialect {
        Dialect::LinePatch => Some(Form::LinePatch),
        Dialect::FileBundle => Some(Form::WholeFiles),
        Dialect::SearchPatch => Some(Form::SearchPatch),
        Dialect::StructuredPatch => Some(Form::Replacements),
        Dialect::GitPatch => None,
        other => return Err(format!("{other} is only read, {}", expected())),
    };
    Ok(Target(dialect, form))
}

pub(super) fn run(args: &Args, homes: &HomeDirs) -> anyhow::Result<Exit> {
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Shell);
    Ok(match attempt(args, &homes.state_home()?, &policies) {
        Ok(document) => output::print_bytes(&document),
        Err(refused) => output::show_refused(output::Form { json: false }, &refused),
    })
}

fn attempt(args: &Args, state_home: &Path, policies: &PolicyFiles) -> Result<Vec<u8>, Refused> {
    let workspace = Workspace::open_to_look(std::slice::from_ref(&args.root), state_home, Box::new(SystemDisk))?;
    let policy = policies.read(&workspace).map_err(|error| error.failure())?;
    let document = args.document.read().map_err(Refusal::from)?;
    let document = document.map_err(|document| refuse_document(&workspace, &document, &policy))?;
    document.warnings.iter().for_each(output::warn);
    let written = look(&workspace, &document.batch, &policy, |plan| write(plan, args.to))
        .map_err(|refusal| Refusal { failures: in_terms_of(document.dialect, &document.batch, refusal.failures) })?;
    Ok(written.map_err(Refusal::from)?)
}

/// Writes a plan as a document, parses that again and checks that it plans the same.
fn write(plan: &BatchPlan<'_>, Target(dialect, form): Target) -> Result<Vec<u8>, Vec<Failure>> {
    let bytes = match form {
        Some(form) => {
            let batch = express::express(plan, form)?;
            let text = documents::write(&batch, dialect).ok_or_else(|| {
                let message = format!("a batch of this form cannot be written as {dialect}");
                let hint = "this is a defect of the program; nothing was changed";
                vec![Failure::new(Reason::Internal, message).hint(hint)]
            })?;
            text.into_bytes()
        }
        None => express::diff(plan).map_err(|failure| vec![failure])?,
    };
    plan.warnings.iter().for_each(output::warn);
    if !plan.clipboards.is_empty() {
        output::say("warning: CLIPBOARDS_LEFT_OUT: no other dialect has clipboards; applying this changes none");
    }
    let again = documents::parse(&bytes, Some(dialect))?;
    express::verify(&again.batch, plan)?;
    Ok(bytes)
}
