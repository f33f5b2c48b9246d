//! Whether a person has to agree to what becomes of a file.

use aptix_engine::file_plan::{FileAction, FilePlan};
use aptix_model::report::FileStatus;

use super::find::Found;
use super::proposal::{Ask, Need};
use super::withheld::Hidden;
use crate::policy::caller::Caller;
use crate::policy::choices::Deletions;
use crate::policy::paths::Named;
use crate::policy::{Access, Policy, ignore_rules};
use crate::workspace::read::place::Place;

/// For each file, whether a person has to agree to what becomes of it; those of `hidden` are compared with the batch.
pub(super) fn needs(policy: &Policy, plans: &[FilePlan<'_>], found: &[Found], hidden: &[Hidden<'_>]) -> Vec<Need> {
    let needs = plans.iter().zip(found).enumerate().map(|(index, (plan, found))| {
        let is_compared = hidden.iter().any(|hidden| hidden.file == index);
        need(policy, plan, found, is_compared)
    });
    let mut needs: Vec<_> = needs.collect();
    ask_about_hard_links(policy, plans, found, &mut needs);
    needs
}

/// Whether a person has to agree to what becomes of a file, wherever it comes from or goes to. A file that
/// stays as it is needs no agreement.
fn need(policy: &Policy, plan: &FilePlan<'_>, found: &Found, is_compared: bool) -> Need {
    if let Some(why) = found.withheld.filter(|_| is_compared) {
        return Need::Ask { ask: Ask::Withheld(why), other: None };
    }
    // Whether a withheld file is as described already must not be seen by who is asked about it.
    if plan.status == FileStatus::Unchanged && found.withheld.is_none() {
        return Need::Nothing;
    }
    let other = found.other.as_ref().map(|other| &other.place);
    let places = || std::iter::once(&found.place).chain(other);
    let about =
        |place: &Place| other.filter(|other| std::ptr::eq(*other, place)).map(|_| place.path.as_str().to_owned());
    let access: Vec<_> = places().map(|place| policy.access(Named::of(place, &place.real()))).collect();
    let listed = places().zip(&access).find_map(|(place, access)| match access {
        Access::Asked(listed) => Some((place, listed)),
        Access::Allowed | Access::Usual => None,
    });
    if let Some((place, listed)) = listed {
        return Need::Ask { ask: Ask::Listed(listed.clone()), other: about(place) };
    }
    if access.iter().all(|access| *access == Access::Allowed) {
        return Need::Nothing;
    }
    if let Some(found) = std::iter::once(found).chain(found.other.as_deref()).find(|found| found.secret.is_some()) {
        return Need::Ask { ask: Ask::Secret, other: about(&found.place) };
    }
    if let Some(place) = places().find(|place| place.sensitive) {
        return Need::Ask { ask: Ask::Sensitive, other: about(place) };
    }
    if let Some(place) = places().find(|place| place.is_new_dot_name()) {
        return Need::Ask { ask: Ask::NewDotName, other: about(place) };
    }
    if policy.caller == Caller::Server && loosens(plan, found) {
        return Need::Ask { ask: Ask::IgnoreRules, other: None };
    }
    match plan.status {
        FileStatus::Deleted if policy.deletions == Deletions::Ask => Need::Ask { ask: Ask::Deletion, other: None },
        _ => Need::Usual,
    }
}

/// Asks about the first file that loses other names by getting new content, where policy denies files: one of those may be
/// among the names, which are not looked for. One question is enough for a batch.
fn ask_about_hard_links(policy: &Policy, plans: &[FilePlan<'_>], found: &[Found], needs: &mut [Need]) {
    let is_broken = |plan: &FilePlan<'_>, found: &Found| {
        // A withheld file is written although it is as described already: that it is must not be seen.
        let is_written = match plan.status {
            FileStatus::Modified | FileStatus::Renamed => true,
            FileStatus::Unchanged => found.withheld.is_some(),
            FileStatus::Created | FileStatus::Deleted | FileStatus::Failed | FileStatus::Skipped => false,
        };
        is_written
            && found.original.as_ref().is_some_and(|original| original.links > 1)
            && policy.denies_anything(found.place.root())
    };
    let mut usual = plans.iter().zip(found).zip(needs).filter(|(_, need)| **need == Need::Usual);
    if let Some((_, need)) = usual.find(|((plan, found), _)| is_broken(plan, found)) {
        *need = Need::Ask { ask: Ask::HardLinked, other: None };
    }
}

/// Whether a change may open to a server what ignore rules keep from it.
fn loosens(plan: &FilePlan<'_>, found: &Found) -> bool {
    let after = (plan.action != FileAction::Delete).then(|| plan.content());
    let moved_to = found.other.as_deref().filter(|_| plan.moved_to.is_some());
    let comes = |to: &Found| to.is_rules && ignore_rules::loosens(None, after.as_deref());
    let stays = || match &after {
        _ if found.withheld.is_some() && plan.base().is_some() => true,
        Some(after) if plan.moved_to.is_none() => ignore_rules::loosens(plan.base(), Some(after)),
        _ => ignore_rules::loosens(plan.base(), None),
    };
    moved_to.is_some_and(comes) || (found.is_rules && stays())
}
