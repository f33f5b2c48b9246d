//! The differences between Aptix and git that are meant: each with a predicate and a reason.

use aptix_model::failure::Failure;

use crate::family::Case;
use crate::ours::Ours;
use crate::perturb::Perturbation;

/// A difference that is meant.
pub(crate) struct Class {
    /// As the page calls it.
    pub(crate) name: &'static str,
    is_it: Predicate,
}

enum Predicate {
    /// Aptix refuses what git applies: by the reason and detail of the refusal.
    Stricter(fn(&Case, &str) -> bool),
    /// Aptix applies what git refuses: by the warnings and the kind of git's message.
    Lenient(fn(&Case, &[String], &str) -> bool),
}

const CLASSES: [Class; 7] = [
    Class { name: "the change is already there", is_it: Predicate::Stricter(|_, code| code == "ALREADY_APPLIED") },
    Class {
        name: "several places, and git takes the nearest",
        is_it: Predicate::Stricter(|_, code| code.starts_with("TEXT_NOT_UNIQUE")),
    },
    Class {
        name: "a full index id of another file",
        is_it: Predicate::Stricter(|case, code| code == "INDEX_MISMATCH" && case.is_written("--full-index")),
    },
    Class {
        name: "a name that not every system allows",
        is_it: Predicate::Stricter(|_, code| code.starts_with("INVALID_PATH")),
    },
    Class {
        name: "no context, and more than one meaning",
        is_it: Predicate::Stricter(|case, code| code == "PATCH_UNSUPPORTED.NO_CONTEXT" && case.is_written("-U0")),
    },
    Class {
        name: "lines that end otherwise",
        is_it: Predicate::Lenient(|_, warnings, kind| {
            warnings.iter().any(|warning| warning == "LINE_ENDINGS_KEPT") && kind == "does not apply"
        }),
    },
    Class {
        name: "blank lines that end with CRLF lost their blank",
        is_it: Predicate::Lenient(|case, _, kind| {
            kind == "corrupt patch" && case.is_perturbed(Perturbation::BlankLost)
        }),
    },
];

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Class> {
    CLASSES.iter()
}

/// Why Aptix refuses a diff that git applies.
pub(crate) fn stricter(case: &Case, failure: &Failure) -> Option<&'static Class> {
    let code = Ours::code(failure);
    CLASSES.iter().find(|class| matches!(class.is_it, Predicate::Stricter(is_it) if is_it(case, &code)))
}

/// Why Aptix applies a diff that git refuses.
pub(crate) fn lenient(case: &Case, warnings: &[String], message: &str) -> Option<&'static Class> {
    let kind = kind(message);
    CLASSES.iter().find(|class| matches!(class.is_it, Predicate::Lenient(is_it) if is_it(case, warnings, &kind)))
}

/// What git says, without names and numbers.
pub(crate) fn kind(message: &str) -> String {
    const KINDS: [&str; 20] = [
        "patch with only garbage",
        "No valid patches",
        "corrupt patch",
        "patch fragment without header",
        "does not apply",
        "No such file",
        "already exists in working directory",
        "does not exist in index",
        "lacks filename information",
        "inconsistent",
        "removal patch leaves file contents",
        "depends on old contents",
        "cannot apply binary patch",
        "unrecognized input",
        "git diff header",
        "invalid mode",
        "wrong type",
        "has type",
        "invalid path",
        "unable to",
    ];
    let known = KINDS.iter().find(|kind| message.contains(**kind));
    let first = || message.lines().find(|line| line.starts_with("error")).unwrap_or(message).to_owned();
    known.map_or_else(first, |kind| (*kind).to_owned())
}
