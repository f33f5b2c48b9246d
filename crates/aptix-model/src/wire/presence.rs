//! The part of `Hello` in which an agent states what it is and can do.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::field::{missing, unknown_enum};
use super::v1;
use crate::failure::Failure;
use crate::presence::{ApprovalMode, FEATURES, NAME_BYTES, Presence, ROOT_NAME_BYTES, ROOTS};
use crate::reason::{Detail, Reason};

impl From<Presence> for v1::Hello {
    /// The position and the ids are left out.
    fn from(presence: Presence) -> Self {
        let approval_mode = v1::ApprovalMode::from(presence.mode).into();
        let Presence { version, roots, features, .. } = presence;
        Self { version, roots, approval_mode, features, ..Self::default() }
    }
}

impl From<Option<ApprovalMode>> for v1::ApprovalMode {
    fn from(mode: Option<ApprovalMode>) -> Self {
        match mode {
            None => Self::Unspecified,
            Some(ApprovalMode::Ask) => Self::Ask,
            Some(ApprovalMode::Auto) => Self::Auto,
            Some(ApprovalMode::Never) => Self::Never,
        }
    }
}

/// Reads what an agent states of itself.
///
/// # Errors
/// INVALID_REQUEST, naming each field that is not as the protocol describes it.
impl TryFrom<v1::Hello> for Presence {
    type Error = Vec<Failure>;

    fn try_from(hello: v1::Hello) -> Result<Self, Vec<Failure>> {
        let v1::Hello { version, roots, approval_mode, features, .. } = hello;
        let mode = match v1::ApprovalMode::try_from(approval_mode) {
            Ok(v1::ApprovalMode::Unspecified) => Ok(None),
            Ok(v1::ApprovalMode::Ask) => Ok(Some(ApprovalMode::Ask)),
            Ok(v1::ApprovalMode::Auto) => Ok(Some(ApprovalMode::Auto)),
            Ok(v1::ApprovalMode::Never) => Ok(Some(ApprovalMode::Never)),
            Err(_) => Err(unknown_enum("hello.approvalMode", approval_mode)),
        };
        let checks = [
            (!version.is_empty()).then(|| name("hello.version", &version, NAME_BYTES)).transpose().err(),
            names("hello.roots", &roots, ROOTS, ROOT_NAME_BYTES).err(),
            roots.is_empty().then(|| missing("hello.roots", "the name of at least one root")),
            names("hello.features", &features, FEATURES, NAME_BYTES).err(),
        ];
        let mut failures: Vec<_> = checks.into_iter().flatten().collect();
        match mode {
            Ok(mode) if failures.is_empty() => Ok(Self { version, roots, mode, features }),
            Ok(_) => Err(failures),
            Err(unknown) => {
                failures.push(unknown);
                Err(failures)
            }
        }
    }
}

/// Checks a list of names: not too many, each once.
fn names(field: &str, list: &[String], most: usize, bytes: usize) -> Result<(), Failure> {
    if list.len() > most {
        let message = format!("{field} has {} entries, expected at most {most}", list.len());
        return Err(Failure::new(Reason::TooLarge, message).field(field));
    }
    let mut seen = BTreeSet::new();
    for text in list {
        name(field, text, bytes)?;
        if !seen.insert(text) {
            let message = format!("{field} has {text:?} twice, expected each name once");
            return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::IdFormat).field(field));
        }
    }
    Ok(())
}

fn name(field: &str, text: &str, bytes: usize) -> Result<(), Failure> {
    if !text.is_empty() && text.len() <= bytes && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let message =
        format!("{field} has a name of {} bytes, expected 1 to {bytes} bytes without control characters", text.len());
    Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::IdFormat).field(field))
}
