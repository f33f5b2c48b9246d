//! Files that hold keys, passwords or tokens, known by their names, and private keys, known by their first line.

use alloc::string::String;

use super::spelling::canonical_names;
use super::table::{Table, is_named};

/// How a file that holds secrets is guarded. In either case nothing of it leaves the machine and no tool shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Secret {
    /// A server or a model never edits it; a local command asks.
    Closed,
    /// A person has to agree to every edit.
    Asked,
}

const CLOSED: Table = Table {
    directories: &[],
    files: &[
        ".env",
        ".env.*",
        ".git-credentials",
        ".netrc",
        ".npmrc",
        ".pypirc",
        "*.pem",
        "_netrc",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_rsa",
    ],
    paths: &[],
};

const ASKED: Table = Table {
    directories: &[".aws", ".azure", ".gnupg", ".password-store", ".ssh"],
    files: &[
        ".boto",
        ".dev.vars",
        ".dev.vars.*",
        ".env-*",
        ".env_*",
        ".htpasswd",
        ".my.cnf",
        ".pgpass",
        ".s3cfg",
        ".terraformrc",
        ".vault-token",
        ".yarnrc.yml",
        // Aptix's own copies: of whatever files batches replaced.
        "*.aptix-displaced",
        "*.aptix-tmp",
        "*.env",
        "*.env.local",
        "*.jks",
        "*.kdbx",
        "*.key",
        "*.keystore",
        "*.kubeconfig",
        "*.p12",
        "*.pfx",
        "*.ppk",
        "*.tfstate",
        "*.tfstate.backup",
        "*.tfvars",
        "*.tfvars.json",
        "application_default_credentials.json",
        "client_secret*.json",
        "credentials.json",
        "kubeconfig",
        "local.settings.json",
        "service-account*.json",
        "service_account*.json",
        "serviceaccount*.json",
    ],
    paths: &[
        ".cargo/credentials*",
        ".config/gcloud/",
        ".config/gh/",
        ".config/git/credentials",
        ".docker/config.json",
        ".gem/credentials",
        ".kube/config",
        ".m2/settings-security.xml",
        ".terraform.d/credentials.tfrc.json",
    ],
};

/// Names of the tables that hold placeholders.
const FREE: [&str; 4] = [".env.dist", ".env.example", ".env.sample", ".env.template"];

/// What follows or precedes a separator in the name of a file that holds placeholders.
const PLACEHOLDERS: [&str; 4] = ["dist", "example", "sample", "template"];

/// The names that OpenSSH gives to private keys, without what a copy or a hardware key adds.
const KEYS: [&str; 4] = ["id_dsa", "id_ecdsa", "id_ed25519", "id_rsa"];

/// Extensions of files about keys that are no keys.
const NO_KEYS: [&str; 22] = [
    "c", "cc", "cpp", "cs", "go", "h", "hpp", "html", "java", "js", "json", "kt", "md", "php", "pub", "py", "rb", "rs",
    "rst", "swift", "ts", "txt",
];

/// Whether a path, valid or not, names a file that usually holds secrets, and how that is guarded.
#[must_use]
pub fn secret(path: &str) -> Option<Secret> {
    secret_by_names(&canonical_names(path))
}

pub(super) fn secret_by_names(names: &[String]) -> Option<Secret> {
    let last = names.last()?;
    if CLOSED.has(names) && !FREE.contains(&last.as_str()) {
        return Some(Secret::Closed);
    }
    let is_in_directory = names.iter().any(|name| ASKED.directories.iter().any(|directory| is_named(name, directory)));
    let is_asked = is_in_directory || is_key(last) || is_kept_copy(last) || (ASKED.has(names) && !is_placeholder(last));
    is_asked.then_some(Secret::Asked)
}

/// Whether a name is that of a file that shows the form of one with secrets: `example.env`, `.env-sample`.
fn is_placeholder(name: &str) -> bool {
    name.split(['.', '-', '_']).any(|part| PLACEHOLDERS.contains(&part))
}

/// Whether Aptix gives a name to what another process wrote over a file, `NAME.kept-DIGITS`. The file itself may have been
/// ignored or denied, which the copy's name no longer shows.
fn is_kept_copy(name: &str) -> bool {
    let Some((_, mark)) = name.rsplit_once(".kept-") else { return false };
    let digits = mark.split_once('-').map_or(mark, |(digits, _number)| digits);
    digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a name is that of a private key of OpenSSH or of a copy of one: `id_ed25519_sk`, `id_rsa.bak`.
fn is_key(name: &str) -> bool {
    let Some(rest) = KEYS.iter().find_map(|key| name.strip_prefix(key)) else { return false };
    let is_copy = rest.starts_with(['.', '-', '_', '~', ' ']) || rest.starts_with(|next: char| next.is_ascii_digit());
    let extension = rest.rsplit_once('.').map_or("", |(_, extension)| extension);
    is_copy && !NO_KEYS.contains(&extension)
}

/// How many bytes of a file [`is_private_key`] looks at.
pub const KEY_HEAD_BYTES: usize = 128;

/// What the first line of a private key has between its dashes: the formats of OpenSSL, OpenSSH, PGP and SSH2.
const KEY_LABELS: [&str; 8] = [
    "PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "PGP PRIVATE KEY BLOCK",
    "SSH2 ENCRYPTED PRIVATE KEY",
];

/// Whether a file is a private key, by its first line. `head` is what it begins with, at least [`KEY_HEAD_BYTES`] of it
/// or all. Keys in directories for tests (`test*`, `fixtures`) do not count.
#[must_use]
pub fn is_private_key(path: &str, head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    is_key_header(line) && !is_for_tests(path)
}

fn is_key_header(line: &[u8]) -> bool {
    let Ok(line) = core::str::from_utf8(line.trim_ascii_end()) else { return false };
    let label = line.strip_prefix("----").map(|rest| rest.trim_start_matches('-').trim_start());
    let label = label.and_then(|rest| rest.strip_prefix("BEGIN "));
    let is_pem = label.is_some_and(|label| KEY_LABELS.contains(&label.trim_end_matches('-').trim_end()));
    is_pem || line.starts_with("PuTTY-User-Key-File-")
}

/// Whether a file is in a directory that holds files for tests.
fn is_for_tests(path: &str) -> bool {
    let names = canonical_names(path);
    let directories = names.split_last().map_or(&[][..], |(_file, directories)| directories);
    directories.iter().any(|name| name.starts_with("test") || name == "fixtures")
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    #[test]
    fn the_documentation_lists_every_name() {
        let page = include_str!("../../../../docs/policy.md").to_lowercase();
        let directories = ASKED.directories.iter().map(|name| format!("`{name}/`"));
        let tables = [CLOSED.files, ASKED.files, ASKED.paths, &FREE];
        let others = tables.into_iter().flatten().map(|name| format!("`{name}`"));
        for name in directories.chain(others) {
            assert!(page.contains(&name), "{name}");
        }
    }
}
