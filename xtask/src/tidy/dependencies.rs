//! Holds every package that the workspace builds to the table in `deny.toml`: licences, sources, bans, one version each.
//!
//! `cargo deny` reads the same table where it is installed; here it needs nothing but cargo.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::finding::Finding;
use crate::repo;

/// The table.
const TABLE: &str = "deny.toml";

#[derive(Deserialize)]
struct Table {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Entry>,
    /// Packages that may be there in more than one version.
    skip: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `null` for a package of a folder.
    source: Option<String>,
    rust_version: Option<String>,
    manifest_path: String,
}

/// Compares what cargo resolves with the table, and with the workspace's own `rust-version`.
pub(super) fn check() -> Result<Vec<Finding>> {
    let table: Table = toml::from_str(&repo::read(TABLE)?).with_context(|| format!("failed to read {TABLE}"))?;
    let packages: Vec<Package> = repo::packages(&repo::resolved(&table.graph.targets)?)?;
    Ok(compare(&table, &packages, &repo::root().display().to_string()))
}

fn compare(table: &Table, packages: &[Package], root: &str) -> Vec<Finding> {
    let mut messages = Vec::new();
    let is_ours = |package: &Package| package.source.is_none() && package.manifest_path.starts_with(root);
    let ours = packages.iter().filter(|package| is_ours(package));
    let oldest = ours.filter_map(|package| package.rust_version.as_deref()).map(release).min().unwrap_or_default();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages.iter().filter(|package| !is_ours(package)) {
        versions.entry(&package.name).or_default().push(&package.version);
        messages.extend(judge(table, package, oldest));
    }
    let skip = |name: &str| table.bans.skip.iter().any(|entry| entry.name == name);
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        if !skip(name) {
            let versions = versions.join(", ");
            messages.push(format!("{name} is built in versions {versions}; settle on one, or skip it with a reason"));
        }
    }
    for Entry { name, .. } in &table.bans.skip {
        if versions.get(name.as_str()).is_none_or(|versions| versions.len() < 2) {
            messages.push(format!("{name} is no longer built in more than one version; do not skip it"));
        }
    }
    messages.into_iter().map(|message| Finding { path: TABLE.to_owned(), line: 0, message }).collect()
}

/// What is wrong with a package of others.
fn judge(table: &Table, package: &Package, oldest: (u64, u64)) -> Vec<String> {
    let mut messages = Vec::new();
    let name = format!("{} {}", package.name, package.version);
    if !package.source.as_deref().is_some_and(|source| source.starts_with("registry+")) {
        let source = package.source.as_deref().unwrap_or(&package.manifest_path);
        messages.push(format!("{name} comes from {source}; packages come from the registry alone"));
    }
    let license = package.license.as_deref().unwrap_or_default();
    if !is_allowed(license, &table.licenses.allow) {
        messages.push(format!("{name} is under {license:?}, which the allowed licences do not permit"));
    }
    if let Some(entry) = table.bans.deny.iter().find(|entry| entry.name == package.name) {
        messages.push(format!("{name} is banned ({}); `cargo tree -i {}` shows who uses it", entry.reason, entry.name));
    }
    let needed = package.rust_version.as_deref().map(release).unwrap_or_default();
    if needed > oldest {
        let (major, minor) = oldest;
        messages.push(format!("{name} needs Rust {}.{}; we promise {major}.{minor}", needed.0, needed.1));
    }
    messages
}

/// The major and minor number of a Rust release.
fn release(version: &str) -> (u64, u64) {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

/// Whether an SPDX expression permits use under allowed licences; `/` is an old way to write `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(&mut rest, allowed) == Some(true) && rest.is_empty()
}

/// `all_of OR all_of ..`; `None` if it breaks off.
fn any_of(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut is_met = all_of(rest, allowed)?;
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        is_met |= all_of(rest, allowed)?;
    }
    Some(is_met)
}

/// `one AND one ..`
fn all_of(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut is_met = one(rest, allowed)?;
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        is_met &= one(rest, allowed)?;
    }
    Some(is_met)
}

/// A licence, a licence with an exception, or an expression in brackets.
fn one(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let permits = |name: &str| allowed.iter().any(|allowed| allowed == name);
    let (is_met, after) = match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let is_met = any_of(rest, allowed)?;
            (is_met, rest.strip_prefix(&[")"])?)
        }
        [license, "WITH", exception, after @ ..] => (permits(&format!("{license} WITH {exception}")), after),
        [license, after @ ..] => (permits(license), after),
        [] => return None,
    };
    *rest = after;
    Some(is_met)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let entry = |name: &str| Entry { name: name.to_owned(), reason: "a reason".to_owned() };
        Table {
            graph: Graph { targets: Vec::new() },
            licenses: Licenses { allow: ["MIT", "Zlib", "Apache-2.0 WITH X"].map(str::to_owned).to_vec() },
            bans: Bans { deny: vec![entry("openssl-sys")], skip: vec![entry("syn"), entry("once")] },
        }
    }

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some("MIT".to_owned()),
            source: Some("registry+of-all".to_owned()),
            rust_version: Some("1.90.1".to_owned()),
            manifest_path: format!("/cache/{name}/Cargo.toml"),
        }
    }

    #[test]
    fn what_the_table_does_not_allow_is_found() {
        let packages = [
            Package {
                source: None,
                license: None,
                manifest_path: "/house/x/Cargo.toml".to_owned(),
                ..package("ours", "0.1.0")
            },
            Package { source: None, ..package("beside", "1.0.0") },
            Package { source: Some("git+ssh://x".to_owned()), ..package("git", "1.0.0") },
            Package { license: Some("GPL-3.0-only".to_owned()), ..package("copyleft", "1.0.0") },
            Package { license: None, ..package("unstated", "1.0.0") },
            Package { rust_version: Some("1.91".to_owned()), ..package("newer", "1.0.0") },
            Package { rust_version: None, ..package("openssl-sys", "0.9.0") },
            package("twice", "1.0.0"),
            package("twice", "2.0.0"),
            package("syn", "1.0.0"),
            package("syn", "2.0.0"),
        ];
        let found = compare(&table(), &packages, "/house");
        let found: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            found,
            [
                "beside 1.0.0 comes from /cache/beside/Cargo.toml; packages come from the registry alone",
                "git 1.0.0 comes from git+ssh://x; packages come from the registry alone",
                "copyleft 1.0.0 is under \"GPL-3.0-only\", which the allowed licences do not permit",
                "unstated 1.0.0 is under \"\", which the allowed licences do not permit",
                "newer 1.0.0 needs Rust 1.91; we promise 1.90",
                "openssl-sys 0.9.0 is banned (a reason); `cargo tree -i openssl-sys` shows who uses it",
                "twice is built in versions 1.0.0, 2.0.0; settle on one, or skip it with a reason",
                "once is no longer built in more than one version; do not skip it",
            ]
        );
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let allowed = table().licenses.allow;
        for met in ["MIT", "GPL-2.0/MIT", "GPL OR (MIT AND Zlib)", "Apache-2.0 WITH X OR GPL", "MIT AND (GPL OR Zlib)"]
        {
            assert!(is_allowed(met, &allowed), "{met}");
        }
        for unmet in ["", "GPL", "MIT AND GPL", "GPL OR MIT AND GPL", "Apache-2.0", "(MIT", "MIT)", "MIT OR", "AND"] {
            assert!(!is_allowed(unmet, &allowed), "{unmet}");
        }
    }
}
