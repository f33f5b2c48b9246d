//! A second parser of diffs: sections with their names, modes and hunks; ignores the text around them.
//! Nothing of Aptix's own parser is used.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::git::quoted;
use crate::memory::Tree;
use crate::mend::Counts;

/// What a diff says about one file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Section {
    /// What follows `diff --git `.
    git: Option<String>,
    /// What follows `---` and `+++`.
    sides: Option<(String, String)>,
    /// What follows `rename from` and `rename to`, or `copy from` and `copy to`, with the verb.
    moved: [Option<(&'static str, String)>; 2],
    old_mode: Option<String>,
    new_mode: Option<String>,
    created: Option<String>,
    deleted: Option<String>,
    pub(crate) hunks: Vec<Hunk>,
    /// Whether it is the first one of another mail.
    pub(crate) begins_mail: bool,
}

/// A hunk with its lines, as written.
#[derive(Clone, Debug)]
pub(crate) struct Hunk {
    pub(crate) counts: Counts,
    pub(crate) lines: Vec<Vec<u8>>,
}

/// How the prefixes of names are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// The first component of each name is none of the path.
    Stripped,
    /// Names are paths.
    Written,
    /// Each name as the file that exists says.
    ByFile,
}

/// The path before and the path after; none where the file is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Paths {
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

impl Paths {
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.old.iter().chain(&self.new)
    }
}

/// Takes a diff apart, with the lines that its hunks count.
pub(crate) fn sections(diff: &[u8]) -> Vec<Section> {
    let lines: Vec<&[u8]> = diff.split_inclusive(|byte| *byte == b'\n').collect();
    let mut sections: Vec<Section> = Vec::new();
    let (mut at, mut mails, mut seen) = (0, 0, 0);
    while let Some(line) = lines.get(at) {
        at += 1;
        mails += usize::from(line.starts_with(b"From ") && line.ends_with(b" 00:00:00 2001\n"));
        if let Some(counts) = Counts::read(line) {
            let end = counts.end(&lines, at);
            if let Some(section) = sections.last_mut() {
                let lines = lines[at..end].iter().filter_map(|line| with_marker(line)).collect();
                section.hunks.push(Hunk { counts, lines });
            }
            at = end;
            continue;
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        if let Some(names) = text.strip_prefix("diff --git ") {
            let begins_mail = mails > std::mem::replace(&mut seen, mails);
            sections.push(Section { git: Some(names.to_owned()), begins_mail, ..Section::default() });
        } else if let Some(old) = text.strip_prefix("--- ") {
            let below = lines[at..].iter().map(|line| line.trim_ascii_end()).find(|line| !line.is_empty());
            let below = below.and_then(|line| line.strip_prefix(b"+++ ".as_slice())).map(String::from_utf8_lossy);
            let Some(new) = below else { continue };
            if sections.last().is_none_or(|section| section.sides.is_some() || !section.hunks.is_empty()) {
                sections.push(Section::default());
            }
            sections.last_mut().into_iter().for_each(|last| last.sides = Some((old.to_owned(), new.to_string())));
        } else if let Some(section) = sections.last_mut() {
            section.read(&text);
        }
    }
    sections
}

impl Section {
    fn read(&mut self, line: &str) {
        if self.sides.is_some() || !self.hunks.is_empty() {
            return;
        }
        let rest = |start: &str| line.strip_prefix(start).map(str::to_owned);
        for verb in ["rename", "copy"] {
            for (place, side) in ["from", "to"].iter().enumerate() {
                if let Some(name) = rest(&format!("{verb} {side} ")) {
                    self.moved[place] = Some((verb, name));
                }
            }
        }
        for (start, mode) in [
            ("old mode ", &mut self.old_mode),
            ("new mode ", &mut self.new_mode),
            ("new file mode ", &mut self.created),
            ("deleted file mode ", &mut self.deleted),
        ] {
            if let Some(found) = rest(start) {
                *mode = Some(found);
            }
        }
    }

    /// The paths of the section, where files have the names that are `known`.
    pub(crate) fn paths(&self, reading: Reading, known: &BTreeSet<String>) -> Option<Paths> {
        if let [Some((_, from)), Some((_, to))] = &self.moved {
            return Some(Paths { old: Some(name(from)), new: Some(name(to)) });
        }
        let sides = self.sides.as_ref().map(|(old, new)| [name(old), name(new)]);
        let [is_new, is_gone] = sides.as_ref().map_or([false; 2], |sides| sides.each_ref().map(|side| is_null(side)));
        let mut names: Vec<[String; 2]> = self.git.iter().flat_map(|line| pairs(line)).collect();
        names.extend(sides);
        let readings = |name: &String| match reading {
            Reading::Stripped => vec![stripped(name)],
            Reading::Written => vec![name.clone()],
            Reading::ByFile => vec![stripped(name), name.clone()],
        };
        // The path that each pair of names can mean, best where both of its names can.
        let flat: Vec<&String> = names.iter().flatten().filter(|name| !is_null(name)).collect();
        let mut candidates: Vec<String> = flat.iter().flat_map(|name| readings(name)).collect();
        candidates.dedup();
        let meant = |path: &String| flat.iter().filter(|name| readings(name).contains(path)).count();
        let is_new = is_new || self.created.is_some();
        let is_fit = |path: &String| known.contains(path) != is_new && reading == Reading::ByFile;
        // Later ones win among equals: what `---` and `+++` say.
        let path = candidates.iter().max_by_key(|path| (meant(path), is_fit(path)))?.clone();
        let is_new = is_new || (!known.contains(&path) && self.creates());
        let is_gone = is_gone || self.deleted.is_some();
        Some(Paths { old: (!is_new).then(|| path.clone()), new: (!is_gone).then_some(path) })
    }

    /// The file that the section takes, and the one that it leaves.
    pub(crate) fn ends<'a>(&self, paths: &'a Paths) -> [Option<&'a String>; 2] {
        let is_copy = self.moved.iter().flatten().any(|(verb, _)| *verb == "copy");
        [paths.old.as_ref().filter(|_| !is_copy), paths.new.as_ref()]
    }

    /// Whether the only hunk has no old side.
    fn creates(&self) -> bool {
        matches!(self.hunks.as_slice(), [hunk] if hunk.counts.old_start == 0 && hunk.counts.old == 0)
    }

    /// The section as git writes it, with the prefixes `a/` and `b/`; where its hunks are numbered anew, for an old file with
    /// so many lines.
    pub(crate) fn write(&self, paths: &Paths, renumbered: Option<i64>) -> Vec<u8> {
        let Some(any) = paths.old.as_ref().or(paths.new.as_ref()) else { return Vec::new() };
        let (old, new) = (paths.old.as_ref().unwrap_or(any), paths.new.as_ref().unwrap_or(any));
        let (a, b) = (quoted(&format!("a/{old}")), quoted(&format!("b/{new}")));
        let mut text = format!("diff --git {a} {b}\n");
        // Writing to a string does not fail.
        let mut put = |start: &str, rest: &str| {
            let _ = writeln!(text, "{start} {rest}");
        };
        if let (Some(_), Some(to)) = (&self.old_mode, &self.new_mode) {
            // Which mode a file has is not looked at.
            put("old mode", if to == "100755" { "100644" } else { "100755" });
            put("new mode", to);
        }
        if let [Some((verb, _)), Some(_)] = &self.moved {
            put(&format!("{verb} from"), &quoted(old));
            put(&format!("{verb} to"), &quoted(new));
        }
        let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "100644".to_owned());
        if paths.old.is_none() {
            put("new file mode", &mode(&self.created));
        }
        if paths.new.is_none() {
            put("deleted file mode", &mode(&self.deleted));
        }
        if !self.hunks.is_empty() {
            put("---", if paths.old.is_some() { &a } else { "/dev/null" });
            put("+++", if paths.new.is_some() { &b } else { "/dev/null" });
        }
        let mut text = text.into_bytes();
        let mut moved = 0;
        for hunk in &self.hunks {
            let counts = renumbered.map_or(hunk.counts, |lines| hunk.numbered(lines).renumbered(moved));
            moved += counts.new - counts.old;
            text.extend(counts.header().bytes());
            text.extend(hunk.lines.concat());
        }
        text
    }
}

impl Hunk {
    /// The counts, at the end of a file with so many lines if the old side says that it ends there.
    fn numbered(&self, lines: i64) -> Counts {
        let marked = self.lines.windows(2).find(|pair| pair[1].starts_with(b"\\")).map(|pair| pair[0][0]);
        let is_last = marked.is_some_and(|sign| sign != b'+') && self.counts.old <= lines;
        let old_start = if is_last { lines - self.counts.old + 1 } else { self.counts.old_start };
        Counts { old_start, ..self.counts }
    }
}

/// The paths of all sections, and those that files have when all are applied one after another.
pub(crate) fn all_paths(sections: &[Section], tree: &Tree, reading: Reading) -> Option<Vec<Paths>> {
    let mut known: BTreeSet<String> = tree.keys().cloned().collect();
    let one = |section: &Section| {
        let paths = section.paths(reading, &known)?;
        known.extend(paths.new.clone());
        Some(paths)
    };
    sections.iter().map(one).collect()
}

/// A line of a hunk, or the whole marker below one. A backslash alone is neither.
fn with_marker(line: &[u8]) -> Option<Vec<u8>> {
    match line {
        [b'\\', b' ', ..] => Some(b"\\ No newline at end of file\n".to_vec()),
        [b'\\', ..] => None,
        _ => Some(line.to_vec()),
    }
}

fn is_null(name: &str) -> bool {
    name == "/dev/null"
}

fn stripped(name: &str) -> String {
    name.split_once('/').map_or(name, |(_, rest)| rest).to_owned()
}

/// A name without its quotes, and with slashes.
fn name(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        // The time that a perturbation writes.
        let end = text.find('\t').or_else(|| text.find(" 2024-0")).unwrap_or(text.len());
        return text[..end].trim_end().replace('\\', "/");
    };
    let (mut bytes, mut rest) = (Vec::new(), inner.as_bytes());
    while let [first, tail @ ..] = rest {
        rest = tail;
        let octal = || rest.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match (first, octal()) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            (b'\\', None) => {}
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The two names of a `diff --git` line: those that are alike, perhaps without their first components.
fn pairs(line: &str) -> Option<[String; 2]> {
    let all = || line.match_indices(' ').map(|(at, _)| [name(&line[..at]), name(&line[at + 1..])]);
    let is_alike = |[old, new]: &[String; 2]| old == new || stripped(old) == stripped(new);
    let is_part = |[old, new]: &[String; 2]| old.ends_with(&stripped(new)) || new.ends_with(&stripped(old));
    all().find(is_alike).or_else(|| all().find(is_part))
}
