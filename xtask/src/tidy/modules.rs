//! Checks the imports between the files of each crate: no cycles, and none from a lower layer to a higher one.
//!
//! What is known and not yet mended is in one list, which only shrinks: an entry that no longer holds is a finding too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, Result};

use super::finding::Finding;
use super::imports::{self, Imports};
use super::layers::{LAYERS, room_of};
use crate::repo::{self, Text};

/// The list of what is known.
const KNOWN: &str = "xtask/src/tidy/known_imports.txt";

/// What breaks the layers: entry of the list of the known, and the message.
type Breach = (String, String);

/// Checks every crate against the layers and the list.
pub(super) fn check(texts: &[Text]) -> Result<Vec<Finding>> {
    let known = texts.iter().find(|text| text.path == KNOWN).map_or("", |text| text.content.as_str());
    let known: BTreeSet<&str> = known.lines().collect();
    let breaches = breaches(texts)?;
    let finding = |message| Finding { path: KNOWN.to_owned(), line: 0, message };
    let new = breaches.iter().filter(|(entry, _)| !known.contains(entry.as_str()));
    let gone = known.iter().filter(|entry| !breaches.contains_key(**entry));
    let gone =
        gone.map(|entry| finding(format!("`{entry}` no longer holds; drop the line: cargo xtask tidy --accept")));
    Ok(new.map(|(_, message)| finding(message.clone())).chain(gone).collect())
}

/// Prints everything that breaks the layers of the crates whose name holds `part`, known or not.
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
        let breaches = of_layers(name, &imports, layers);
        breaches.iter().for_each(|(_, message)| println!("  {message}"));
    }
    Ok(())
}

/// Writes the list of what breaks the layers today.
pub(super) fn accept(texts: &[Text]) -> Result<()> {
    let mut list = String::new();
    for entry in breaches(texts)?.keys() {
        writeln!(list, "{entry}")?;
    }
    repo::write(KNOWN, list.as_bytes())
}

fn breaches(texts: &[Text]) -> Result<BTreeMap<String, String>> {
    let mut breaches = BTreeMap::new();
    for (name, layers) in LAYERS {
        let imports = imports_of(texts, name)?;
        breaches.extend(of_circles(name, &imports));
        breaches.extend(of_layers(name, &imports, layers));
    }
    Ok(breaches)
}

fn imports_of(texts: &[Text], name: &str) -> Result<Imports> {
    let folder = if name == "xtask" { "xtask/src/".to_owned() } else { format!("crates/{name}/src/") };
    let below = |text: &'_ Text| text.path.strip_prefix(&folder).is_some_and(|path| path.ends_with(".rs"));
    let sources = texts.iter().filter(|text| below(text)).map(|text| (&text.path[folder.len()..], &*text.content));
    imports::read(name, &sources.collect()).with_context(|| format!("failed to read the imports of {name}"))
}

fn of_circles(name: &str, imports: &Imports) -> Vec<Breach> {
    let in_circle = |circle: BTreeSet<String>| {
        let message = |file: &String| {
            let (to, (line, path)) = next(imports, file, &circle);
            format!(
                "{name}: {file}:{line} imports {path}, and {to} leads back to it (cargo xtask tidy --arrows {name})"
            )
        };
        circle.iter().map(|file| (format!("{name} circle {file}"), message(file))).collect::<Vec<_>>()
    };
    circles(imports).into_iter().flat_map(in_circle).collect()
}

/// An import of a file within its circle.
fn next<'a>(imports: &'a Imports, file: &str, circle: &BTreeSet<String>) -> (&'a str, (usize, &'a str)) {
    let mut arrows = imports.arrows.iter();
    let found = arrows.find(|((from, to), _)| from == file && circle.contains(to));
    found.map_or(("", (0, "")), |((_, to), (line, path))| (to, (*line, path)))
}

fn of_layers(name: &str, imports: &Imports, layers: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in imports.files.iter().filter(|file| room_of(layers, file).is_none()) {
        let message = format!("{name}: {file} has no room; name it in xtask/src/tidy/layers.rs");
        breaches.push((format!("{name} roomless {file}"), message));
    }
    for ((from, to), (line, path)) in &imports.arrows {
        let (Some(lower), Some(upper)) = (room_of(layers, from), room_of(layers, to)) else { continue };
        if lower.0 <= upper.0 && lower.1 != upper.1 {
            let way = if lower.0 == upper.0 { "beside" } else { "above" };
            let message = format!("{name}: {from}:{line} imports {path} of {to}: {} is {way} {}", upper.1, lower.1);
            breaches.push((format!("{name} {way} {from} -> {to}"), message));
        }
    }
    breaches
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

    fn entries(breaches: Vec<Breach>) -> Vec<String> {
        breaches.into_iter().map(|(entry, _)| entry).collect()
    }

    #[test]
    fn files_of_a_circle_are_found_and_files_that_lead_into_it_are_not() {
        let imports = imports(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("c", "e"), ("f", "g"), ("g", "f")]);
        let found = entries(of_circles("x", &imports));
        assert_eq!(found, ["x circle a", "x circle b", "x circle c", "x circle f", "x circle g"]);
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
        let found = entries(of_layers("x", &imports, LAYERS));
        assert_eq!(found, ["x roomless baseless", "x above base/b -> left/b", "x beside left/b -> base/right/c"]);
    }
}
