//! What of a workspace's files may leave the machine for a caller, file after file: the egress rule with the ignore rules
//! that it depends on, each read once.

use aptix_model::failure::Failure;
use aptix_model::report::Withheld;

use super::Policy;
use super::caller::Caller;
use super::choices::Excerpts;
use super::egress::{self, Sight};
use super::ignore_rules;
use super::paths::Named;
use crate::workspace::read::ignored::Ignored;
use crate::workspace::read::place::Place;
use crate::workspace::read::walk::{Closed, Kind};
use crate::workspace::roots::workspace::Workspace;

/// Decides what may be disclosed, for one batch or question.
#[derive(Debug)]
pub(crate) struct Disclosure<'w> {
    workspace: &'w Workspace,
    policy: &'w Policy,
    ignored: Ignored,
}

/// What there is at a path, besides its names.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Inside<'a> {
    /// How many names the file has; 0 or 1 where there is none yet.
    pub(crate) names: usize,
    /// What it begins with.
    pub(crate) head: &'a [u8],
}

impl<'w> Disclosure<'w> {
    pub(crate) fn new(workspace: &'w Workspace, policy: &'w Policy) -> Self {
        Self { workspace, policy, ignored: Ignored::default() }
    }

    /// Why nothing of the file at a place is disclosed, if nothing is.
    pub(crate) fn withheld(&mut self, place: &Place, inside: Inside<'_>) -> Option<Withheld> {
        let real = place.real();
        let sight = Sight {
            links: &place.links,
            ignored: self.is_ignored(place, &real),
            names: inside.names,
            head: inside.head,
            ..Sight::of(Named::of(place, &real))
        };
        egress::withheld(self.policy, sight)
    }

    /// The answer to its caller who asks to read a withheld file.
    pub(crate) fn not_read(&self, why: Withheld) -> Failure {
        egress::not_read(why, self.policy.caller)
    }

    /// As [`Self::withheld`], for a file at a real path of a root that was met on a walk.
    pub(crate) fn withheld_at(&mut self, root: usize, path: &str, inside: Inside<'_>) -> Option<Withheld> {
        let sight = Sight {
            ignored: self.is_any_ignored(root, [path], Kind::File),
            names: inside.names,
            head: inside.head,
            ..Sight::of(Named { root, path, real: path })
        };
        egress::withheld(self.policy, sight)
    }

    /// Refuses to look at a file or directory of which nothing is disclosed, or nothing in it, as far as its path shows.
    pub(crate) fn may_be_searched(&mut self, root: usize, path: &str, kind: Kind) -> Result<(), Closed> {
        egress::may_be_searched(self.policy, root, path)?;
        match self.withheld_by_path(root, path, kind) {
            Some(why) => Err(egress::not_searched(why)),
            None => Ok(()),
        }
    }

    /// Why nothing of a file at a path is disclosed, or of what is in a directory there, as far as the path shows.
    pub(crate) fn withheld_by_path(&mut self, root: usize, path: &str, kind: Kind) -> Option<Withheld> {
        if kind == Kind::File {
            return self.withheld_at(root, path, Inside::default());
        }
        if self.policy.caller != Caller::Server {
            return None;
        }
        match self.is_any_ignored(root, [path], kind) {
            None => Some(Withheld::Unknown),
            Some(true) => Some(Withheld::Ignored),
            // A directory that `reads` does not name may hold files that it does.
            Some(false) => (self.policy.excerpts == Excerpts::AfterApproval).then_some(Withheld::Unapproved),
        }
    }

    /// Whether a file is ignored under any of its names; `None` where that cannot be found out. Only servers are concerned.
    pub(crate) fn is_ignored(&mut self, place: &Place, real: &str) -> Option<bool> {
        let mut paths: Vec<&str> = vec![real, place.path.as_str()];
        paths.extend(place.links.iter().map(String::as_str));
        paths.dedup();
        self.is_any_ignored(place.root(), paths, Kind::File)
    }

    fn is_any_ignored<'p>(
        &mut self,
        root: usize,
        paths: impl IntoIterator<Item = &'p str>,
        kind: Kind,
    ) -> Option<bool> {
        if self.policy.caller != Caller::Server {
            return Some(false);
        }
        let held = self.workspace.roots().get(root)?;
        let mut is_ignored = false;
        for path in paths {
            is_ignored |= self.ignored.is_ignored(root, held, path, kind == Kind::Directory).ok()?;
        }
        Some(is_ignored)
    }

    /// Whether a file holds ignore rules under any of its names; only servers are concerned.
    pub(crate) fn has_rules(&self, place: &Place, real: &str) -> bool {
        let Some(root) = self.workspace.roots().get(place.root()).filter(|_| self.policy.caller == Caller::Server)
        else {
            return false;
        };
        ignore_rules::is_one(place.path.as_str()) || ignore_rules::is_one(real) || self.ignored.has_rules(root, real)
    }
}
