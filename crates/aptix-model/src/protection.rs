//! Files that no batch may touch, whoever asks: version control's, Aptix's own, and secrets; and files that a person has
//! to agree to, because a machine does what they say.
//!
//! Names are compared as the most forgiving file systems compare them: case folded, characters
//! that HFS+ ignores taken out, NTFS short names recognised.

mod secrets;
mod spelling;
mod table;

use crate::reason::Detail;

pub use self::secrets::{KEY_HEAD_BYTES, Secret, is_private_key, secret};
use self::spelling::{ShortName, canonical_name, canonical_names, is_hash};
use self::table::is_named;

/// Directories of version control and of Aptix itself, without their leading dot.
const CLOSED: [&str; 6] = ["git", "hg", "svn", "jj", "bzr", "aptix"];

/// Directories whose files tell an editor, an agent or a build service what to do.
const STEERING_DIRECTORIES: [&str; 23] = [
    ".aider",
    ".buildkite",
    ".circleci",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".forgejo",
    ".gemini",
    ".gitea",
    ".githooks",
    ".gitlab",
    ".husky",
    ".idea",
    ".kiro",
    ".roo",
    ".vs",
    ".vscode",
    ".windsurf",
    ".woodpecker",
    ".zed",
    ".fleet",
];

/// What of `.github` tells a machine what to do.
const STEERING_IN_GITHUB: [&str; 6] = ["actions", "agents", "chatmodes", "instructions", "prompts", "workflows"];

/// Git's own settings that are part of a tree. Git follows no link in their place, and nor does anybody here.
const GIT_SETTINGS: [&str; 3] = [".gitattributes", ".gitconfig", ".gitmodules"];

/// Files that tell an editor, an agent, a shell or a build service what to do.
const STEERING_FILES: [&str; 29] = [
    ".aider.conf.yml",
    ".bash_profile",
    ".bashrc",
    ".clinerules",
    ".cursorrules",
    ".drone.yml",
    ".envrc",
    ".gitlab-ci.yml",
    ".mcp.json",
    ".pre-commit-config.yaml",
    ".profile",
    ".travis.yml",
    ".windsurfrules",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agents.md",
    "agents.override.md",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "claude.local.md",
    "claude.md",
    "copilot-instructions.md",
    "gemini.md",
    "jenkinsfile",
    "lefthook.yml",
    "lefthook.yaml",
    "mcp.json",
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

/// Whether a path, valid or not, is closed; both `/` and `\` separate its names.
#[must_use]
pub fn of(path: &str) -> Option<Protection> {
    let names = canonical_names(path);
    if names.iter().any(|name| is_protected(name)) {
        return Some(Protection::Protected);
    }
    (secrets::secret_by_names(&names) == Some(Secret::Closed)).then_some(Protection::Secret)
}

/// Whether a person has to agree before a file of this path is made, changed or taken away: it tells an editor, an
/// agent, a build service or version control what to do, or is in a directory that does.
#[must_use]
pub fn is_sensitive(path: &str) -> bool {
    let mut is_in_github = false;
    for name in canonical_names(path) {
        if is_one_of(&name, &STEERING_DIRECTORIES)
            || is_one_of(&name, &STEERING_FILES)
            || is_one_of(&name, &GIT_SETTINGS)
            || name.ends_with(".code-workspace")
            || (is_in_github && is_one_of(&name, &STEERING_IN_GITHUB))
        {
            return true;
        }
        is_in_github = is_one_of(&name, &[".github"]);
    }
    false
}

/// What closes a path because a link has this name.
#[must_use]
pub fn of_link(name: &str) -> Option<Protection> {
    let name = canonical_name(name);
    is_one_of(&name, &GIT_SETTINGS).then_some(Protection::LinkedSettings)
}

/// Whether a canonical name is one of these, or may be the short name of one.
fn is_one_of(name: &str, known: &[&str]) -> bool {
    known.iter().any(|known| is_named(name, known))
}

fn is_protected(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|name| CLOSED.contains(&name)) || is_short(name)
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
    fn secrets_are_closed_and_their_examples_are_not() {
        for path in [".env", "d/.env.local", "certs/key.pem", ".env:x", ".env/", ".ssh/id_rsa", ".NPMRC", ".netrc"] {
            assert_eq!(of(path), Some(Protection::Secret), "{path:?}");
        }
        for path in [".env.example", "src/git.rs", ".gitignore", "gitx~1", "environment", "id_rsa.pub", ".github/x"] {
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
            ".github/CODEOWNERS",
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
