//! Names that are guarded: those that no batch touches, those of secrets, and those that a person has to agree to.
//!
//! Names are compared as the most forgiving file systems compare them: case folded, characters
//! that HFS+ ignores taken out, NTFS short names recognised.

mod secrets;
mod sensitive;
mod spelling;
mod table;

use crate::path::fold;
use crate::reason::Detail;

pub use self::secrets::{KEY_HEAD_BYTES, Secret, is_private_key, secret};
use self::sensitive::GIT_SETTINGS;
pub use self::sensitive::{is_dot_name, is_sensitive};
use self::spelling::{ShortName, canonical_name, canonical_names, is_hash, visible_name};
use self::table::is_named;

/// Directories of version control and of Aptix itself, without their leading dot.
const CLOSED: [&str; 8] = ["aptix", "bzr", "git", "hg", "jj", "pijul", "sl", "svn"];

/// What CVS keeps in a directory `CVS`. In a directory `cvs`, which may be a source directory, only these are closed.
const OF_CVS: [&str; 13] = [
    "base",
    "baserev",
    "checkin.prog",
    "entries",
    "entries.backup",
    "entries.log",
    "entries.static",
    "notify",
    "repository",
    "root",
    "tag",
    "template",
    "update.prog",
];

/// Why a path is closed to every batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Protection {
    /// Version control's or Aptix's own.
    #[error("the file belongs to version control or to Aptix itself and is never edited")]
    Protected,
    /// Keys, passwords, tokens.
    #[error("the file usually holds secrets and is never read or edited")]
    Secret,
    /// A link in the place of version control's settings.
    #[error("version control's settings are a link here, and are then never edited")]
    LinkedSettings,
}

impl Protection {
    /// The catalogue's word for it.
    #[must_use]
    pub const fn detail(self) -> Detail {
        match self {
            Self::Protected | Self::LinkedSettings => Detail::Protected,
            Self::Secret => Detail::Secret,
        }
    }
}

/// Whether a path, valid or not, is closed to every batch, from any author; both `/` and `\` separate its names. Whether
/// a file that holds [secrets](secret) may be edited depends on who asks.
#[must_use]
pub fn of(path: &str) -> Option<Protection> {
    let is_closed = canonical_names(path).iter().any(|name| is_protected(name)) || is_of_cvs(path);
    is_closed.then_some(Protection::Protected)
}

/// What closes a path because a link has this name.
#[must_use]
pub fn of_link(name: &str) -> Option<Protection> {
    let name = canonical_name(name);
    GIT_SETTINGS.iter().any(|setting| is_named(&name, setting)).then_some(Protection::LinkedSettings)
}

fn is_protected(name: &str) -> bool {
    name == "_darcs" || name.strip_prefix('.').is_some_and(|name| CLOSED.contains(&name)) || is_short(name)
}

fn is_of_cvs(path: &str) -> bool {
    let mut is_in_cvs = false;
    path.split(['/', '\\']).map(visible_name).filter(|name| !name.is_empty()).any(|name| {
        let folded = fold(&name);
        let is_own = name == "CVS" || (is_in_cvs && OF_CVS.contains(&folded.as_str()));
        is_in_cvs = folded == "cvs";
        is_own
    })
}

/// Whether NTFS may have made the name short for a closed one: `git~1`, and `gi7eba~1` once four such are taken.
fn is_short(name: &str) -> bool {
    let Some(ShortName { stem, extension: "" }) = ShortName::parse(name) else { return false };
    CLOSED.contains(&stem) || stem.strip_prefix("gi").is_some_and(is_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_control_and_own_state_are_closed_in_every_spelling() {
        let spellings = [
            ".git",
            ".git/config",
            ".git/hooks/pre-commit",
            ".GIT/config",
            ".Git/x",
            "d/.git/x",
            "git~1/x",
            "GIT~4",
            "gi7eba~1",
            ".hg/x",
            ".svn/x",
            "a/.jj",
            ".bzr",
            ".sl/store",
            "a/_darcs/prefs/prefs",
            "_DARCS",
            ".pijul/config",
            "pijul~1",
            "CVS",
            "a/CVS/x",
            "a/C\u{200d}VS",
            "cvs/Root",
            "Cvs/ENTRIES.log",
            ".aptix/policy.toml",
            ".APTIX",
            ".git./x",
            ".git /x",
            "HG~1/x",
            ".git.:x",
            ".\u{17f}vn/x",
        ];
        for path in spellings {
            assert_eq!(of(path), Some(Protection::Protected), "{path:?}");
        }
        let ignored = "\u{200c}\u{200d}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{206a}\u{206b}\u{206c}\u{206d}\u{206e}\u{206f}\u{feff}";
        assert_eq!(ignored.chars().count(), 16);
        for character in ignored.chars() {
            assert_eq!(of(&std::format!(".g{character}it/x")), Some(Protection::Protected), "{character:?}");
        }
    }

    #[test]
    fn what_is_not_version_controls_is_not_closed() {
        for path in [
            ".env",
            "certs/key.pem",
            ".env.example",
            "src/git.rs",
            "src/cvs/parser.rs",
            "src/cvs",
            "darcs/x",
            "sl/x",
            "CVS.md",
            ".gitignore",
            "gitx~1",
            "environment",
            "id_rsa.pub",
            ".github/x",
        ] {
            assert_eq!(of(path), None, "{path:?}");
        }
    }

    #[test]
    fn what_steers_a_machine_is_sensitive_in_every_spelling() {
        let sensitive = [
            ".gitmodules",
            "sub/.gitattributes",
            ".gitconfig",
            ".vscode/tasks.json",
            ".VSCODE/settings.json",
            ".cursor/mcp.json",
            ".Cursor/MCP.json",
            ".claude/settings.json",
            "pkg/.codex/config.toml",
            ".mcp.json",
            "AGENTS.md",
            "agents.MD",
            "docs/Agents.md",
            "CLAUDE.md",
            ".idea/workspace.xml",
            ".devcontainer/devcontainer.json",
            ".github/workflows/ci.yml",
            ".GitHub/WorkFlows/new.yml",
            ".github\\workflows\\ci.yml",
            ".g\u{200c}itmodules",
            "VSCODE~1/tasks.json",
            "gitmod~1",
            "github~1/WORKFL~1/x.yml",
            "cl0a1b~1/x",
            "mcp~2.jso",
            ".vscode ./tasks.json",
            "x.code-workspace",
            "Jenkinsfile",
        ];
        for path in sensitive {
            assert!(is_sensitive(path), "{path:?}");
            assert_eq!(of(path), None, "{path:?} can be agreed to");
        }
        let plain = [
            ".gitignore",
            ".github/FUNDING.yml",
            "workflows/x",
            "vscode/x",
            "agents/x.md",
            "src/a~1.rs",
            "gitmod~x",
            "",
        ];
        for path in plain {
            assert!(!is_sensitive(path), "{path:?}");
        }
        assert_eq!(of_link(".GITmodules"), Some(Protection::LinkedSettings));
        assert_eq!(of_link("AGENTS.md"), None);
    }
}
