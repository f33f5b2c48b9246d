//! Files that no batch may touch, whoever asks: version control's, Aptix's own, and secrets.
//!
//! Names are compared as the most forgiving file systems compare them: case folded, characters
//! that HFS+ ignores taken out, NTFS short names recognised.

use alloc::string::String;

use crate::path::fold;
use crate::reason::Detail;

/// Directories of version control and of Aptix itself, without their leading dot.
const CLOSED: [&str; 6] = ["git", "hg", "svn", "jj", "bzr", "aptix"];

/// Why a path is closed to every batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Protection {
    /// Version control's or Aptix's own.
    #[error("the file belongs to version control or to Aptix itself and is never edited")]
    Protected,
    /// Keys, passwords, tokens.
    #[error("the file usually holds secrets and is never read or edited")]
    Secret,
}

impl Protection {
    /// The catalogue's word for it.
    #[must_use]
    pub const fn detail(self) -> Detail {
        match self {
            Self::Protected => Detail::Protected,
            Self::Secret => Detail::Secret,
        }
    }
}

/// Whether a path, valid or not, is closed; both `/` and `\` separate its names.
#[must_use]
pub fn of(path: &str) -> Option<Protection> {
    let mut last = String::new();
    for name in path.split(['/', '\\']).map(canonical_name).filter(|name| !name.is_empty()) {
        if is_protected(&name) {
            return Some(Protection::Protected);
        }
        last = name;
    }
    is_secret(&last).then_some(Protection::Secret)
}

/// A name as HFS+ and NTFS would compare it, without the stream it may name.
fn canonical_name(name: &str) -> String {
    let name = name.split_once(':').map_or(name, |(name, _stream)| name);
    let kept: String = name.chars().filter(|character| !is_ignored_by_hfs(*character)).collect();
    fold(kept.trim_end_matches(['.', ' ']))
}

const fn is_ignored_by_hfs(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

fn is_protected(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|name| CLOSED.contains(&name)) || is_short(name)
}

/// Whether NTFS may have made the name short for a closed one: `git~1`, and `gi7eba~1` once four such are taken.
fn is_short(name: &str) -> bool {
    let Some((stem, number)) = name.split_once('~') else { return false };
    let is_hex = |hex: &str| hex.len() == 4 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_closed = CLOSED.contains(&stem) || stem.strip_prefix("gi").is_some_and(is_hex);
    is_closed && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_secret(name: &str) -> bool {
    match name {
        ".env" | ".npmrc" | ".netrc" | "_netrc" | ".pypirc" | ".git-credentials" => true,
        "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519" => true,
        ".env.example" | ".env.sample" | ".env.template" => false,
        _ => name.starts_with(".env.") || name.ends_with(".pem"),
    }
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
}
