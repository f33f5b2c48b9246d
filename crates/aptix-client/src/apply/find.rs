//! Finds, reads and looks at every file of a batch before anything is planned.

use aptix_engine::plan::{self, Reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::target::ValidTarget;
use aptix_engine::valid::ValidBatch;
use aptix_model::batch::FileEdit;
use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::protection::{KEY_HEAD_BYTES, Secret};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Withheld;

use super::refusal::Refusal;
use crate::policy::Policy;
use crate::policy::disclosure::Disclosure;
use crate::policy::egress::{self, Sight};
use crate::policy::paths::Named;
use crate::workspace::read::attributes::Attributes;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::place::{Claim, Claims, Place};
use crate::workspace::read::snapshot::{self, Original, ReadError};
use crate::workspace::read::{git_dir, resolve};
use crate::workspace::roots::workspace::Workspace;

/// What was found for one file patch, or at the other path that it names.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) original: Option<Original>,
    pub(crate) other: Option<Box<Self>>,
    /// What a file in this place gets besides its bytes, where there is none yet.
    pub(crate) attributes: Option<Attributes>,
    /// Why the answer has nothing of its content, if it has not.
    pub(crate) withheld: Option<Withheld>,
    /// How it is guarded, if it holds secrets.
    pub(crate) secret: Option<Secret>,
    /// Whether it holds ignore rules.
    pub(crate) is_rules: bool,
}

impl Found {
    /// Whether the author of the edit is not shown this file, or the one that it comes from or replaces.
    pub(crate) fn is_withheld(&self) -> bool {
        self.withheld.is_some() || self.other.as_ref().is_some_and(|other| other.is_withheld())
    }

    /// A person has agreed that what the author may read anyhow is shown.
    pub(crate) fn open_if_approved(&mut self) {
        self.withheld = self.withheld.filter(|why| *why != Withheld::Unapproved);
        self.other.iter_mut().for_each(|other| other.open_if_approved());
    }

    pub(crate) fn observed(&self) -> Observed<'_> {
        Observed {
            path: self.place.reported.clone(),
            doc_path: self.place.doc_path.clone(),
            content: self.original.as_ref().map(|original| original.bytes.as_slice()),
            digest: None,
            is_executable: self.original.as_ref().is_some_and(|original| original.attributes.is_executable()),
            other: self.other.as_ref().map(|other| Box::new(other.observed())),
        }
    }
}

/// Refuses to go on for a caller that does not wait any more.
pub(super) type GoOn<'a> = &'a dyn Fn() -> Result<(), Failure>;

pub(super) fn find(
    workspace: &Workspace,
    batch: &ValidBatch<'_>,
    policy: &Policy,
    go_on: GoOn<'_>,
) -> Result<Vec<Found>, Refusal> {
    let mut search = Search::new(workspace, policy).while_wanted(go_on);
    for (reads, patch) in plan::reads(batch).zip(&batch.batch.files) {
        // What is wrong with the target shows when it is found.
        if patch.edit.moved_to().is_some()
            && let Ok(place) = search.resolve(reads.target)
        {
            search.leave(&place);
        }
    }
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for (index, (reads, patch)) in plan::reads(batch).zip(&batch.batch.files).enumerate() {
        match find_patched(&mut search, index, reads, &patch.edit) {
            Ok(file) => found.push(file),
            Err(failure) => {
                let is_full = failure.detail == Some(Detail::Files);
                failures.push(failure.file(index, patch.target.as_str()));
                if is_full {
                    break;
                }
            }
        }
    }
    if !failures.is_empty() {
        return Err(failures.into());
    }
    let written = found.iter().zip(&batch.batch.files).enumerate().flat_map(|(index, (found, patch))| {
        let stays = patch.edit != FileEdit::DeleteFile && patch.edit.moved_to().is_none();
        let to = found.other.as_ref().filter(|_| patch.edit.moved_to().is_some());
        let places = stays.then_some(&found.place).into_iter().chain(to.map(|to| &to.place));
        places.map(move |place| (index, place))
    });
    git_dir::refuse_made(workspace, written).map_err(|(index, error)| {
        let target = batch.batch.files.get(index).map_or("", |file| file.target.as_str());
        error.failure().file(index, target)
    })?;
    Ok(found)
}

/// Finds the file of a file patch, and the one at the other path that the patch names.
fn find_patched(search: &mut Search<'_>, index: usize, reads: Reads<'_>, edit: &FileEdit) -> Result<Found, Failure> {
    let claim = if edit.moved_to().is_some() { Claim::Leaves } else { Claim::Stays };
    let role = if edit.edits_no_bytes() { Role::Whole } else { Role::Changed };
    let place = search.resolve(reads.target)?;
    let target = search.look(index, place, role, claim)?;
    let Some(other) = reads.other else { return Ok(target) };
    let role = if edit.moved_to().is_some() { Role::Changed } else { Role::Read };
    let place = search.resolve(other);
    let other = place.and_then(|place| search.look(index, place, role, Claim::Arrives)).map_err(|failure| {
        let path = edit.moved_to().or(edit.copied_from()).unwrap_or_default();
        role.failure_at(path, failure)
    })?;
    if role == Role::Changed && other.place.root() != target.place.root() {
        let message = "the file is to be renamed from one root into another";
        return Err(Failure::new(Reason::PatchUnsupported, message)
            .hint("create the file in the other root, and delete it in this one"));
    }
    if role == Role::Changed && other.place.at() == target.place.at() {
        return Err(plan::same_file(index));
    }
    Ok(Found { other: Some(Box::new(other)), ..target })
}

/// What a batch does with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its bytes may change.
    Changed,
    /// It is deleted, or gets another name alone.
    Whole,
    /// Its content is taken.
    Read,
}

impl Role {
    /// A failure about the other path of a file patch, whose file is in this role: it belongs to the file patch, and its
    /// message names that path.
    pub(super) fn failure_at(self, path: &str, failure: Failure) -> Failure {
        let is = match self {
            Self::Changed | Self::Whole => "where it is renamed to",
            Self::Read => "what it is copied from",
        };
        Failure { message: format!("{is}, {path:?}: {}", failure.message), ..failure }
    }
}

/// The files of a batch that were found so far, and how many more bytes may be read.
pub(crate) struct Search<'w> {
    workspace: &'w Workspace,
    policy: &'w Policy,
    go_on: GoOn<'w>,
    listings: Listings,
    disclosure: Disclosure<'w>,
    seen: Claims,
    left: u64,
    /// How many more bytes of withheld files may be read: apart, so that no other file measures them.
    withheld_left: u64,
}

impl<'w> Search<'w> {
    pub(crate) fn new(workspace: &'w Workspace, policy: &'w Policy) -> Self {
        let left = policy.limits.batch_bytes;
        Self {
            workspace,
            policy,
            go_on: &|| Ok(()),
            listings: Listings::default(),
            disclosure: Disclosure::new(workspace, policy),
            seen: Claims::new(),
            left,
            withheld_left: left,
        }
    }

    /// The same, for as long as the caller waits.
    pub(super) const fn while_wanted(mut self, go_on: GoOn<'w>) -> Self {
        self.go_on = go_on;
        self
    }

    pub(super) fn resolve(&mut self, target: &ValidTarget) -> Result<Place, Failure> {
        (self.go_on)()?;
        resolve::resolve(self.workspace, &mut self.listings, target).map_err(|error| error.failure())
    }

    /// As [`Self::resolve`], for a path in a root whose position is known.
    pub(crate) fn resolve_in(&mut self, root: usize, path: &WorkspacePath) -> Result<Place, Failure> {
        resolve::resolve_in(self.workspace, &mut self.listings, root, path).map_err(|error| error.failure())
    }

    /// Notes that the file at a place is renamed.
    pub(crate) fn leave(&mut self, place: &Place) {
        self.listings.leave(place.root(), place.real());
    }

    /// Finds what a file patch would that names a path in a root whose position is known; the file may be as large as a
    /// batch, since what it was before may have been.
    pub(crate) fn find_in(
        &mut self,
        index: usize,
        (root, path): (usize, &WorkspacePath),
        claim: Claim,
    ) -> Result<Found, Failure> {
        let place = self.resolve_in(root, path)?;
        self.look(index, place, Role::Whole, claim)
    }

    /// Finds what a reader would of the one file at a target; the file may be as large as a batch.
    pub(crate) fn find_to_read(&mut self, target: &ValidTarget) -> Result<Found, Failure> {
        let place = self.resolve(target)?;
        self.look(0, place, Role::Whole, Claim::Stays)
    }

    /// Reads the file at a place, unless the policy closes it.
    pub(super) fn look(&mut self, index: usize, place: Place, role: Role, claim: Claim) -> Result<Found, Failure> {
        let real = place.real();
        let sight = Sight { links: &place.links, ..Sight::of(Named::of(&place, &real)) };
        self.policy.open(sight.file).map_err(|denial| denial.failure())?;
        egress::refuse_secret(self.policy, sight)?;
        if role != Role::Read
            && let Some(other) = place.same_file_as(&mut self.seen, index, claim)
        {
            return Err(plan::same_file(other));
        }
        let limits = &self.policy.limits;
        // Never less because of what was read before: that would disclose the size of the last file.
        let limit = if role == Role::Whole { limits.batch_bytes } else { limits.file_bytes.min(limits.batch_bytes) };
        let together = || ReadError::BatchTooLarge { limit: limits.batch_bytes }.failure();
        let sight = Sight { ignored: self.disclosure.is_ignored(&place, &real), ..sight };
        let by_path = egress::withheld(self.policy, sight);
        let original = match snapshot::read(self.workspace, &mut self.listings, &place, limit) {
            Ok(original) => original,
            // That it is too large would disclose its size.
            Err(ReadError::TooLarge { .. }) if by_path.is_some() => {
                return Err(by_path.map_or_else(together, |why| egress::not_compared(why, self.policy.caller)));
            }
            Err(ReadError::TooLarge { limit }) if role == Role::Whole || limit < limits.file_bytes => {
                return Err(together());
            }
            Err(error) => return Err(error.failure()),
        };
        let bytes = original.as_ref().map_or(&[][..], |original| &original.bytes);
        let sight = Sight {
            names: original.as_ref().map_or(0, |original| original.links),
            head: bytes.get(..KEY_HEAD_BYTES).unwrap_or(bytes),
            ..sight
        };
        let withheld = egress::withheld(self.policy, sight);
        let secret = egress::secret(self.policy, sight);
        let left = if withheld.is_some() { &mut self.withheld_left } else { &mut self.left };
        *left = left.checked_sub(bytes.len() as u64).ok_or_else(together)?;
        let is_rules = self.disclosure.has_rules(&place, &real);
        Ok(Found { place, original, other: None, attributes: None, withheld, secret, is_rules })
    }
}
