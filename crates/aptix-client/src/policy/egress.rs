//! The one function that decides what of a file may leave the machine: an excerpt, a digest, a size, a diff, an upload.
//!
//! It is asked before any content is compared with an edit, so that neither a refusal nor a success discloses what a
//! withheld file holds.

use aptix_model::failure::Failure;
use aptix_model::protection::{self, Protection, Secret};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Withheld;

use super::Policy;
use super::caller::Caller;
use super::choices::{Excerpts, HardLinks};
use super::paths::Named;
use crate::workspace::read::walk::Closed;

/// A file as this rule looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    /// Its paths.
    pub file: Named<'a>,
    /// The paths of links on the way to it.
    pub links: &'a [String],
    /// Whether it is ignored; `None` where that cannot be found out.
    pub ignored: Option<bool>,
    /// How many names it has; 0 or 1 where there is no file yet.
    pub names: usize,
    /// What it begins with.
    pub head: &'a [u8],
}

impl<'a> Sight<'a> {
    /// A file of which nothing but its paths is known.
    pub(crate) const fn of(file: Named<'a>) -> Self {
        Self { file, links: &[], ignored: None, names: 0, head: &[] }
    }

    fn paths(self) -> impl Iterator<Item = &'a str> {
        self.file.names().chain(self.links.iter().map(String::as_str))
    }
}

/// Why nothing of a file leaves the machine for the caller, if it does not.
pub(crate) fn withheld(policy: &Policy, sight: Sight<'_>) -> Option<Withheld> {
    if policy.caller == Caller::Shell {
        return None;
    }
    if policy.open(sight.file).is_err() {
        return Some(Withheld::Denied);
    }
    if secret(policy, sight).is_some() {
        return Some(Withheld::Secret);
    }
    if policy.caller == Caller::Model {
        return None;
    }
    match sight.ignored {
        None => return Some(Withheld::Unknown),
        Some(true) => return Some(Withheld::Ignored),
        Some(false) => {}
    }
    if policy.rules_for(sight.file.root).any(|rules| rules.closes(sight.file)) {
        return Some(Withheld::Reads);
    }
    if sight.names > 1 && policy.hard_links == HardLinks::Withhold {
        return Some(Withheld::HardLinked);
    }
    (policy.excerpts == Excerpts::AfterApproval).then_some(Withheld::Unapproved)
}

/// How a file that holds secrets is guarded, by its names and by what it begins with, unless the person's policy says that
/// it holds none.
pub(crate) fn secret(policy: &Policy, sight: Sight<'_>) -> Option<Secret> {
    let is_allowed = |path: &str| policy.no_secrets.find(path).is_some();
    let by_name = |path: &str| protection::secret(path).filter(|_| !is_allowed(path));
    let mut found = None;
    for path in sight.paths() {
        match by_name(path) {
            Some(Secret::Closed) => return Some(Secret::Closed),
            Some(Secret::Asked) => found = Some(Secret::Asked),
            None => {}
        }
    }
    let real = sight.file.real;
    found.or_else(|| (protection::is_private_key(real, sight.head) && !is_allowed(real)).then_some(Secret::Asked))
}

/// Refuses to search a file or directory of a root that holds secrets or that policy denies.
pub(crate) fn may_be_searched(policy: &Policy, root: usize, path: &str) -> Result<(), Closed> {
    let file = Named { root, path, real: path };
    if secret(policy, Sight::of(file)).is_some() {
        return Err(Closed { detail: Protection::Secret.detail(), why: Protection::Secret.to_string() });
    }
    policy.open(file).map_err(|denial| Closed { detail: Detail::Denied, why: denial.to_string() })
}

/// Why a withheld file or directory is not searched.
pub(crate) fn not_searched(why: Withheld) -> Closed {
    Closed { detail: why.detail(), why: why.because().to_owned() }
}

/// Refuses to touch a file of secrets, except for the user.
pub(crate) fn refuse_secret(policy: &Policy, sight: Sight<'_>) -> Result<(), Failure> {
    match secret(policy, sight) {
        Some(Secret::Closed) if policy.caller != Caller::Shell => {
            let protection = Protection::Secret;
            let message = format!("{protection} ({:?})", sight.file.real);
            Err(Failure::new(Reason::PolicyDenied, message)
                .detail(protection.detail())
                .hint("leave this file out of the batch; no answer opens it"))
        }
        _ => Ok(()),
    }
}

/// The one answer to an edit that compares content of a withheld file and is not applied, whether no person agreed to the
/// comparison or the edit does not fit.
pub(crate) fn not_compared(why: Withheld, caller: Caller) -> Failure {
    let message = format!(
        "{}; a person at the workstation has to agree before an edit is compared with it, and either none agreed or the edit \
         does not fit",
        not_shown(why, caller)
    );
    let hint = "ask a person at the workstation to make this change, leave the file out, or send its whole new content, which \
                is compared with nothing";
    Failure::new(Reason::ApprovalRequired, message).detail(Detail::Withheld).hint(hint)
}

/// The answer where a withheld file would be copied, renamed or taken up by a clipboard.
pub(crate) fn no_source(why: Withheld, caller: Caller) -> Failure {
    let not_shown = not_shown(why, caller);
    let message = format!("{not_shown}, and so it is not copied, renamed or kept on a clipboard for them");
    let hint = "ask a person at the workstation to do it, or leave the file out";
    Failure::new(Reason::PolicyDenied, message).detail(Detail::Withheld).hint(hint)
}

/// The answer to a caller that asks to read a withheld file; its detail is the word for the reason.
pub(crate) fn not_read(why: Withheld, caller: Caller) -> Failure {
    let detail = why.detail();
    let hint = "ask a person at the workstation for what you need of it";
    Failure::new(Reason::PolicyDenied, not_shown(why, caller)).detail(detail).hint(hint)
}

fn not_shown(why: Withheld, caller: Caller) -> String {
    let readers = match caller {
        Caller::Shell => "people",
        Caller::Model => "models",
        Caller::Server => "servers",
    };
    format!("the content of this file is not shown to {readers}, because {}", why.because())
}
