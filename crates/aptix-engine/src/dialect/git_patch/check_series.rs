//! A file that a diff has in several parts: each part is well-formed, and can follow the one before.

use alloc::string::ToString;

use aptix_model::batch::{GitKind, GitPatch};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use super::check::check;
use crate::checking::site::Site;
use crate::target::Base;

/// Why parts are no series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum Unordered {
    #[error("a series has at least two parts")]
    Short,
    #[error("a part creates the file, and the parts above it leave one")]
    Exists,
    #[error("a part changes the file, and a part above it deletes the file")]
    Gone,
    #[error("a part copies the file, and parts above it change the file")]
    Copy,
    #[error("a part renames the file, and another one creates, copies, renames or deletes it")]
    Renamed,
    #[error("the parts of the diff make the file and delete it again: nothing would change")]
    Nothing,
}

/// Checks all parts, and whether there is a file where one is changed, and none where one is made.
pub(crate) fn check_series(parts: &[GitPatch], site: &mut Site<'_, '_>) -> Option<Base> {
    let mut base = None;
    let mut above = 0;
    for part in parts {
        let checked = site.below(above, |site| check(part, site))?;
        base.get_or_insert(checked);
        above += part.hunks.len();
    }
    if let Err(unordered) = order(parts) {
        site.refuse("parts", || {
            Failure::new(Reason::InvalidRequest, unordered.to_string())
                .detail(Detail::DuplicatePath)
                .hint("send one diff that says what becomes of the file as a whole")
        });
        return None;
    }
    base
}

fn order(parts: &[GitPatch]) -> Result<(), Unordered> {
    let [first, rest @ ..] = parts else { return Err(Unordered::Short) };
    let is_new = matches!(first.kind, GitKind::Create | GitKind::Copy { .. });
    let mut is_there = first.kind != GitKind::Delete;
    for part in rest {
        match (&part.kind, is_there) {
            (GitKind::Create, true) => return Err(Unordered::Exists),
            (GitKind::Modify | GitKind::Delete | GitKind::Rename { .. }, false) => return Err(Unordered::Gone),
            (GitKind::Copy { .. }, _) => return Err(Unordered::Copy),
            _ => is_there = part.kind != GitKind::Delete,
        }
    }
    let renames = parts.iter().filter(|part| matches!(part.kind, GitKind::Rename { .. })).count();
    let deletes = parts.iter().any(|part| part.kind == GitKind::Delete);
    if renames > 1 || (renames == 1 && (deletes || is_new)) {
        return Err(Unordered::Renamed);
    }
    if rest.is_empty() {
        return Err(Unordered::Short);
    }
    if is_new && !is_there { Err(Unordered::Nothing) } else { Ok(()) }
}
