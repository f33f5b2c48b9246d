//! Checks the imports between the files of each crate: no cycles, and none from a lower layer to a higher one. In harnesses
//! only cycles are looked for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::finding::Finding;
use super::imports::{self, Imports};
use super::layers::{LAYERS, room_of};
use crate::repo::Text;

/// Checks every crate against the layers.
pub(super) fn check(texts: &[Text]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (name, layers) in LAYERS {
        let imports = imports_of(texts, name)?;
        let messages = of_circles(name, &imports).into_iter().chain(of_layers(name, &imports, layers));
        let finding = |message| Finding { path: "xtask/src/tidy/layers.rs".to_owned(), line: 0, message };
        findings.extend(messages.map(finding));
    }
    for main in texts.iter().filter(|text| text.path.starts_with("xtask/harness/") && text.path.ends_with("/main.rs")) {
        let folder = main.path.trim_end_matches("main.rs");
        let messages = of_circles(folder, &imports_below(texts, folder, folder)?).into_iter();
        findings.extend(messages.map(|message| Finding { path: main.path.clone(), line: 0, message }));
    }
    Ok(findings)
}

/// Prints everything that breaks the layers of the crates whose name holds `part`.
pub(super) fn print(texts: &[Text], part: &str) -> Result<()> {
    for (name, layers) in LAYERS.iter().filter(|(name, _)| name.contains(part)) {
        let imports = imports_of(texts, name)?;
        println!("{name}");
        for circle in circles(&imports) {
            println!("  {} files import each other:", circle.len());
            let within = |(from, to): &(String, String)| circle.contains(from) && circle.contains(to);
            for ((from, to), (line, path)) in imports.arrows.iter().filter(|(arrow, _)| within(arrow)) {
                println!("    {from}:{line} -> {to}: {path}");
            }
        }
        of_layers(name, &imports, layers).iter().for_each(|message| println!("  {message}"));
    }
    Ok(())
}

fn imports_of(texts: &[Text], name: &str) -> Result<Imports> {
    let folder = if name == "xtask" { "xtask/src/".to_owned() } else { format!("crates/{name}/src/") };
    imports_below(texts, name, &folder)
}

fn imports_below(texts: &[Text], name: &str, folder: &str) -> Result<Imports> {
    let below = |text: &'_ Text| text.path.strip_prefix(folder).is_some_and(|path| path.ends_with(".rs"));
    let sources = texts.iter().filter(|text| below(text)).map(|text| (&text.path[folder.len()..], &*text.content));
    imports::read(name, &sources.collect()).with_context(|| format!("failed to read the imports of {name}"))
}

fn of_circles(name: &str, imports: &Imports) -> Vec<String> {
    let in_circle = |circle: BTreeSet<String>| {
        let leads_back = |file: &String| {
            let mut arrows = imports.arrows.iter();
            let ((_, to), (line, path)) = arrows.find(|((from, to), _)| from == file && circle.contains(to))?;
            Some(format!(
                "{name}: {file}:{line} imports {path}, and {to} leads back to it (cargo xtask tidy --arrows {name})"
            ))
        };
        circle.iter().filter_map(leads_back).collect::<Vec<_>>()
    };
    circles(imports).into_iter().flat_map(in_circle).collect()
}

fn of_layers(name: &str, imports: &Imports, layers: &str) -> Vec<String> {
    let roomless = imports.files.iter().filter(|file| room_of(layers, file).is_none());
    let roomless = roomless.map(|file| format!("{name}: {file} has no room; name it in xtask/src/tidy/layers.rs"));
    let misled = imports.arrows.iter().filter_map(|((from, to), (line, path))| {
        let (lower, upper) = (room_of(layers, from)?, room_of(layers, to)?);
        let way = if lower.0 == upper.0 { "beside" } else { "above" };
        let message = || format!("{name}: {from}:{line} imports {path} of {to}: {} is {way} {}", upper.1, lower.1);
        (lower.0 <= upper.0 && lower.1 != upper.1).then(message)
    });
    roomless.chain(misled).collect()
}

/// The sets of files that lead to each other through imports, of two files or more.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in imports.arrows.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|from| (*from, reachable(&next, from))).collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for file in &imports.files {
        if leads(file, file) && !circles.iter().any(|circle| circle.contains(file)) {
            let circle = imports.files.iter().filter(|other| leads(file, other) && leads(other, file));
            circles.push(circle.cloned().collect());
        }
    }
    circles
}

fn reachable<'a>(next: &BTreeMap<&'a str, Vec<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = next.get(from).cloned().unwrap_or_default();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &str = "
        base
        left | the right: right base/right";

    fn imports(arrows: &[(&str, &str)]) -> Imports {
        let arrow = |(from, to): &(&str, &str)| ((from.to_string(), to.to_string()), (1, "Item".to_owned()));
        let files = arrows.iter().flat_map(|(from, to)| [from.to_string(), to.to_string()]).collect();
        Imports { files, arrows: arrows.iter().map(arrow).collect() }
    }

    #[test]
    fn files_of_a_circle_are_found_and_files_that_lead_into_it_are_not() {
        let imports = imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("c", "e"), ("f", "g"), ("g", "f")]);
        let found = of_circles("x", &imports);
        let starts = found.iter().map(|message| message.split(',').next().unwrap_or_default());
        let expected = ["a", "b", "c", "f", "g"].map(|file| format!("x: {file}:1 imports Item"));
        assert_eq!(starts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn imports_lead_downwards() {
        let imports = imports(&[
            ("left/a", "base/b"),
            ("left/a", "left/b"),
            ("base/b", "left/b"),
            ("left/b", "base/right/c"),
            ("baseless", "left/a"),
        ]);
        assert_eq!(
            of_layers("x", &imports, LAYERS),
            [
                "x: baseless has no room; name it in xtask/src/tidy/layers.rs",
                "x: base/b:1 imports Item of left/b: left is above base",
                "x: left/b:1 imports Item of base/right/c: the right is beside left",
            ]
        );
    }
}
