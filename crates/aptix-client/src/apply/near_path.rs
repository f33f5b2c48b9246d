//! Which file an author may have meant whose path leads to none: one of those that a caller may know of.

use std::ops::ControlFlow;

use aptix_engine::valid::ValidBatch;
use aptix_model::batch::Target;
use aptix_model::failure::Failure;
use aptix_model::path::{WorkspacePath, lowercase};
use aptix_model::reason::Reason;

use super::find::{Found, Search};
use crate::policy::Policy;
use crate::policy::egress;
use crate::workspace::read::place::Claim;
use crate::workspace::read::walk::{Closed, Kind, Met, Visit, Way, walk};
use crate::workspace::roots::workspace::Workspace;

/// Files and directories that are looked at.
const MET: usize = 50_000;
/// Failures for which this is done.
const FAILURES: usize = 8;
/// Paths that are named at most; more would be no answer.
const NAMED: usize = 3;

/// Names, in failures about files that are not there, the files of the first root whose path is like theirs.
pub(super) fn with_near_paths(
    mut failures: Vec<Failure>,
    workspace: &Workspace,
    policy: &Policy,
    batch: &ValidBatch<'_>,
    found: &[Found],
) -> Vec<Failure> {
    let mut missing: Vec<Missing<'_>> = Vec::new();
    for (at, failure) in failures.iter().enumerate() {
        let file = failure.file_index.filter(|_| failure.reason == Reason::FileMissing);
        let Some(found) = file.and_then(|file| found.get(file)) else { continue };
        if found.original.is_none() && found.place.root() == 0 && missing.len() < FAILURES {
            let path = found.place.path.as_str();
            missing.push(Missing { failure: at, path, below: Vec::new(), named_alike: Vec::new() });
        }
    }
    if missing.is_empty() {
        return failures;
    }
    let Some(root) = workspace.root(0) else { return failures };
    let way = Way { root, path: None, after: None };
    let mut looking = Looking { policy, missing, left: MET };
    if walk(way, &mut looking).is_err() {
        return failures;
    }
    for Missing { failure, below, named_alike, .. } in looking.missing {
        let Some(failure) = failures.get_mut(failure) else { continue };
        let file = failure.file_index.and_then(|file| batch.batch.files.get(file)).map(|file| &file.target);
        let near = if below.is_empty() { named_alike } else { below };
        let known = near.into_iter().take(NAMED + 1).filter_map(|path| {
            let mut search = Search::new(workspace, policy);
            let found = search.find_in(0, (0, &WorkspacePath::new(&path).ok()?), Claim::Stays).ok()?;
            let is_known = found.withheld.is_none() && found.original.is_some();
            is_known.then(|| match file {
                Some(Target::DocPath(_)) => format!("{:?}", found.place.doc_path),
                _ => format!("{:?}", found.place.reported.as_str()),
            })
        });
        let known: Vec<String> = known.collect();
        if (1..=NAMED).contains(&known.len()) {
            let of = if known.len() == 1 { "" } else { "one of " };
            let hint = format!("did you mean {of}{}? a path is given from the root down", known.join(", "));
            failure.hint = Some(hint);
        }
    }
    failures
}

/// Looks for paths like those that lead to no file.
struct Looking<'a> {
    policy: &'a Policy,
    missing: Vec<Missing<'a>>,
    /// How many more files and directories are looked at.
    left: usize,
}

impl Visit for Looking<'_> {
    fn may_look(&mut self, path: &str, _: Kind) -> Result<(), Closed> {
        egress::may_be_searched(self.policy, 0, path)
    }

    fn see(&mut self, met: &Met<'_>) -> ControlFlow<()> {
        if let Met::File(file) = met {
            self.missing.iter_mut().for_each(|missing| missing.look_at(&file.path));
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A path that leads to no file, and paths like it: never more than one too many to be named.
struct Missing<'a> {
    /// The position of the failure that says so.
    failure: usize,
    path: &'a str,
    /// It is one of these below a directory, or one of these is it below a directory.
    below: Vec<String>,
    /// Files of its name elsewhere, named only where there are none of those.
    named_alike: Vec<String>,
}

impl Missing<'_> {
    fn look_at(&mut self, path: &str) {
        let is_below = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|head| head.ends_with('/'));
        let name = |path: &str| lowercase(path.rsplit('/').next().unwrap_or_default());
        let near = if is_below(path, self.path) || is_below(self.path, path) {
            &mut self.below
        } else if self.below.is_empty() && name(self.path) == name(path) {
            &mut self.named_alike
        } else {
            return;
        };
        if near.len() <= NAMED {
            near.push(path.to_owned());
        }
    }
}
