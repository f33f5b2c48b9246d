//! Each quote held against the files it may be named for, as these are and as the batch leaves them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::quote::Quote;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Warning;

use super::check::{HINT, ValidName, ValidQuote, about, named, place};
use super::excerpt::Excerpt;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::warning;
use crate::planning::observed::Observed;
use crate::shown::quoted_path;
use crate::text::find::{Budget, FindError};

/// The code of the warning about a block that was taken for an example.
const IGNORED: &str = "BLOCK_IGNORED";
/// Most warnings about blocks; the last one says how many more there are.
const WARNINGS: usize = 100;

/// Decides about every quote of a batch whose files are planned. `observed` has an entry for each name of each quote, in
/// order: what was found there, if the name leads to a place.
///
/// # Errors
/// A failure for each block that is named for a file and does not quote it.
pub(crate) fn settle(
    quotes: &[ValidQuote<'_>],
    observed: &[Option<Observed<'_>>],
    files: &[FilePlan<'_>],
    budget: &mut Budget,
) -> Result<Vec<Warning>, Vec<Failure>> {
    let mut observed = observed.iter();
    let after = After::of(files);
    let (mut warnings, mut failures) = (Vec::new(), Vec::new());
    for quote in quotes {
        let named = quote.names.iter().zip(observed.by_ref());
        let paths: Vec<Path<'_>> = named.filter_map(|(name, found)| Path::of(name, found.as_ref(), &after)).collect();
        match decide(quote.quote, &paths, budget) {
            Ok(why) => warnings.push(ignored(quote.quote, &why)),
            Err(failure) => failures.push(failure),
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    if let Some(more) = warnings.len().checked_sub(WARNINGS).filter(|more| *more > 0) {
        warnings.truncate(WARNINGS - 1);
        let message = format!("{} more blocks of the answer are no edits", more + 1);
        warnings.push(warning(IGNORED, message));
    }
    Ok(warnings)
}

/// A name that is a path, and what its file holds.
struct Path<'a> {
    name: &'a str,
    before: Option<&'a [u8]>,
    after: Option<&'a FilePlan<'a>>,
}

impl<'a> Path<'a> {
    fn of(name: &'a ValidName<'_>, found: Option<&'a Observed<'_>>, after: &After<'a>) -> Option<Self> {
        let after = found.and_then(|found| after.at(found));
        let before = found.and_then(|found| found.content);
        (name.name.is_path || before.is_some() || after.is_some()).then_some(Self {
            name: &name.name.path,
            before,
            after,
        })
    }
}

/// The planned files by where they are afterwards.
struct After<'a> {
    /// Renamed ones, by their root and their new path.
    moved: BTreeMap<(&'a str, &'a str), &'a FilePlan<'a>>,
    /// All others, by their key.
    here: BTreeMap<&'a str, &'a FilePlan<'a>>,
}

impl<'a> After<'a> {
    fn of(files: &'a [FilePlan<'a>]) -> Self {
        let mut after = Self { moved: BTreeMap::new(), here: BTreeMap::new() };
        for file in files {
            match file.moved_to {
                Some(to) => after.moved.insert((root(file.doc_path), to.as_str()), file),
                None => after.here.insert(file.doc_path, file),
            };
        }
        after
    }

    /// The file that is planned for a place. A renamed one replaces a deleted one.
    fn at(&self, found: &Observed<'_>) -> Option<&'a FilePlan<'a>> {
        let moved = self.moved.get(&(root(&found.doc_path), found.path.as_str()));
        moved.or_else(|| self.here.get(found.doc_path.as_str())).copied()
    }
}

fn root(doc_path: &str) -> &str {
    doc_path.split('/').next().unwrap_or_default()
}

/// Why a block is no edit; or what it is refused for.
fn decide(quote: &Quote, paths: &[Path<'_>], budget: &mut Budget) -> Result<String, Failure> {
    let Some(first) = paths.first().filter(|_| !quote.is_announced || paths.len() == 1) else {
        return Ok("it is not named for a file".to_string());
    };
    let excerpt = Excerpt::of(&quote.text);
    for path in paths {
        let after = path.after.filter(|file| file.action != FileAction::Delete).map(FilePlan::content);
        for content in path.before.into_iter().chain(after.as_deref()) {
            if excerpt.occurs_in(content, budget).map_err(too_long)? {
                return Ok(format!("it quotes {}", quoted_path(path.name)));
            }
        }
    }
    let message = format!("{}, and neither edits nor quotes it", named(quote, first.name));
    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::Fence).hint(HINT);
    Err(about(first.name, failure))
}

fn too_long(_: FindError) -> Failure {
    Failure::new(Reason::MatchBudgetExceeded, "holding the blocks of the answer against their files takes too long")
        .hint("leave out blocks that only show code")
}

fn ignored(quote: &Quote, why: &str) -> Warning {
    let message = format!("{} is no edit: {why}", place(quote));
    Warning { code: IGNORED.to_string(), message, line: Some(quote.first_line as usize) }
}
