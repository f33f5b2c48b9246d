//! Which crate may depend on which, read from cargo and never from a list kept by hand.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::finding::Finding;
use crate::repo;

/// For each of our crates, those of ours that it may use in its code. Tests may use more.
const ARROWS: [(&str, &[&str]); 6] = [
    ("aptix-model", &[]),
    ("aptix-engine", &["aptix-model"]),
    ("aptix-telemetry", &["aptix-model"]),
    ("aptix-server", &["aptix-model", "aptix-engine", "aptix-telemetry"]),
    ("aptix-client", &["aptix-model", "aptix-engine", "aptix-telemetry"]),
    ("xtask", &[]),
];

/// What the engine must not reach, not even through others.
const IMPURE: [&str; 6] = ["prost", "serde", "serde_json", "tokio", "tonic", "rustix"];

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `null` for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
    features: Vec<String>,
}

/// Compares cargo's own view of the workspace with the arrows.
pub(super) fn check() -> Result<Vec<Finding>> {
    let packages: Vec<Package> = repo::packages(&repo::metadata()?)?;
    let mut findings = check_packages(&packages);
    let tree = ["tree", "--package", "aptix-engine", "--edges", "normal", "--prefix", "none", "--locked"];
    let tree = repo::capture(repo::cargo().args(tree)).context("failed to see what aptix-engine depends on")?;
    findings.extend(check_engine(&tree));
    Ok(findings)
}

fn check_packages(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = manifest(&package.manifest_path);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            let message = format!("{} is a new crate: say in xtask/src/tidy/crates.rs what it may use", package.name);
            findings.push(Finding { path: manifest, line: 0, message });
            continue;
        };
        let ours = |name: &str| ARROWS.iter().any(|(ours, _)| *ours == name);
        for dependency in package.dependencies.iter().filter(|found| found.kind.as_deref() != Some("dev")) {
            let message = if ours(&dependency.name) && !allowed.contains(&dependency.name.as_str()) {
                format!("{} must not use {}; it may use {allowed:?}", package.name, dependency.name)
            } else if package.name == "aptix-engine" && ours(&dependency.name) && !dependency.features.is_empty() {
                format!("aptix-engine uses {} without features, not with {:?}", dependency.name, dependency.features)
            } else {
                continue;
            };
            findings.push(Finding { path: manifest.clone(), line: 0, message });
        }
    }
    findings
}

fn check_engine(tree: &str) -> Vec<Finding> {
    let reached = |crate_name: &&&str| tree.lines().any(|line| line.split(' ').next() == Some(**crate_name));
    let finding = |name: &&str| Finding {
        path: "crates/aptix-engine/Cargo.toml".to_owned(),
        line: 0,
        message: format!(
            "aptix-engine is pure and must not reach {name}; `cargo tree -p aptix-engine -i {name}` tells how"
        ),
    };
    IMPURE.iter().filter(reached).map(finding).collect()
}

fn manifest(path: &str) -> String {
    let root = format!("{}/", repo::root().display());
    path.strip_prefix(&root).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>, &[&str])]) -> Package {
        let dependency = |(name, kind, features): &(&str, Option<&str>, &[&str])| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            features: features.iter().map(|feature| (*feature).to_owned()).collect(),
        };
        Package {
            name: name.to_owned(),
            manifest_path: format!("{name}/Cargo.toml"),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn arrows_point_one_way_and_tests_may_use_more() {
        let packages = [
            package("aptix-model", &[("aptix-engine", None, &[])]),
            package("aptix-engine", &[("aptix-model", None, &["wire"]), ("memchr", None, &["std"])]),
            package("aptix-client", &[("aptix-server", Some("dev"), &[]), ("aptix-engine", None, &[])]),
            package("aptix-server", &[("aptix-client", Some("build"), &[])]),
            package("aptix-extra", &[]),
        ];
        let found: Vec<String> = check_packages(&packages).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "aptix-model/Cargo.toml: aptix-model must not use aptix-engine; it may use []",
                "aptix-engine/Cargo.toml: aptix-engine uses aptix-model without features, not with [\"wire\"]",
                "aptix-server/Cargo.toml: aptix-server must not use aptix-client; it may use \
                 [\"aptix-model\", \"aptix-engine\", \"aptix-telemetry\"]",
                "aptix-extra/Cargo.toml: aptix-extra is a new crate: say in xtask/src/tidy/crates.rs what it may use",
            ]
        );
    }

    #[test]
    fn the_engine_reaches_nothing_impure() {
        assert!(check_engine("aptix-engine v0.1.0\nserde_core v1.0.0\nmemchr v2.0.0").is_empty());
        assert_eq!(check_engine("aptix-engine v0.1.0\nserde v1.0.0 (*)").len(), 1);
    }
}
