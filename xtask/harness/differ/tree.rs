//! Random trees of files, and random changes of them: what diffs are made of.

use crate::memory::{File, Tree};
use crate::random::Random;

/// Names of files. No name is also a directory, and no two differ in case only.
const NAMES: [&str; 25] = [
    "README.md",
    "a/x.txt",
    "a/a/x.txt",
    "a/b/x.txt",
    "b/x.txt",
    "b/main.rs",
    "x.txt",
    "main.rs",
    "src/main.rs",
    "src/lib.rs",
    "src/a/mod.rs",
    "docs/a guide.md",
    "docs/na\u{ef}ve.txt",
    "\u{65e5}\u{672c}/\u{6587}.txt",
    "Makefile",
    "run.sh",
    "x.txt.old",
    "x.txt.orig",
    "old/file",
    "new/file",
    "i/x.txt",
    "w/x.txt",
    "deep/er/and/deep.er",
    "trailing.",
    "quo\"te.txt",
];

/// Lines that many places share, so that one is taken for another.
const COMMON: [&str; 12] = ["", "", "}", "{", "a", "b", "c", "end", "    return 0;", "x", "\t}", "end "];

/// Lines that a diff has too.
const TRAPS: [&str; 14] = [
    "-- a",
    "++ b",
    "--- a/x.txt",
    "+++ b/x.txt",
    "@@ -1,2 +1,2 @@",
    "diff --git a/x.txt b/x.txt",
    "\\ No newline at end of file",
    "index 0123456..789abcd 100644",
    "rename from x.txt",
    "new file mode 100644",
    "-- ",
    "```",
    " leading",
    "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001",
];

/// Whether something of one in so many chances happens.
pub(crate) fn one_in(random: &mut Random, many: usize) -> bool {
    random.below(many) == 0
}

/// One of some things.
pub(crate) fn pick<'a, T>(random: &mut Random, things: &'a [T]) -> &'a T {
    &things[random.below(things.len())]
}

/// Some name, which a tree may have already.
pub(crate) fn name(random: &mut Random) -> String {
    // The last ones are refused by Aptix, and are to be rare.
    let rare = 2;
    let among = if one_in(random, 60) { NAMES.len() } else { NAMES.len() - rare };
    NAMES[random.below(among)].to_owned()
}

/// Some files.
pub(crate) fn tree(random: &mut Random) -> Tree {
    let count = 1 + random.below(6);
    (0..count).map(|_| (name(random), File { bytes: content(random), is_executable: one_in(random, 6) })).collect()
}

/// A line without its terminator.
pub(crate) fn line(random: &mut Random) -> String {
    match random.below(20) {
        0..8 => format!("line {} of {}", random.below(40), random.below(1000)),
        8..15 => (*pick(random, &COMMON)).to_owned(),
        15..17 => format!("{}\u{fc}n\u{ef} {}", " ".repeat(random.below(5)), random.below(50)),
        17 => (*pick(random, &TRAPS)).to_owned(),
        18 => format!("{}let value = {};", "    ".repeat(random.below(3)), random.below(9)),
        _ => format!("word{}{}", random.below(30), " ".repeat(random.below(2))),
    }
}

/// The content of a file.
fn content(random: &mut Random) -> Vec<u8> {
    if one_in(random, 12) {
        return Vec::new();
    }
    let count = match random.below(4) {
        0 => 1 + random.below(4),
        1 | 2 => 4 + random.below(20),
        _ => 20 + random.below(50),
    };
    let ends = *pick(random, &[Ends::Lf, Ends::Lf, Ends::Lf, Ends::Lf, Ends::CrLf, Ends::Mixed]);
    let mut bytes = Vec::new();
    if one_in(random, 15) {
        bytes.extend_from_slice(b"\xef\xbb\xbf");
    }
    let repeats = one_in(random, 4);
    let block: Vec<String> = (0..3).map(|_| line(random)).collect();
    for number in 0..count {
        let text = if repeats && number % 5 < 3 { block[number % 5].clone() } else { line(random) };
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(ends.of(random));
    }
    if one_in(random, 40) {
        bytes.splice(0..0, b"caf\xe9\n".iter().copied());
    }
    if one_in(random, 200) {
        bytes.extend_from_slice(b"\0binary\n");
    }
    if one_in(random, 5) { open(bytes) } else { bytes }
}

/// How the lines of a file end.
#[derive(Clone, Copy)]
enum Ends {
    Lf,
    CrLf,
    Mixed,
}

impl Ends {
    fn of(self, random: &mut Random) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Mixed if one_in(random, 2) => b"\r\n",
            Self::Mixed => b"\n",
        }
    }

    /// As most lines of some bytes end.
    fn like(bytes: &[u8]) -> Self {
        if bytes.windows(2).any(|pair| pair == b"\r\n") { Self::CrLf } else { Self::Lf }
    }
}

fn open(mut bytes: Vec<u8>) -> Vec<u8> {
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    bytes
}

/// A copy of a tree with random edits.
pub(crate) fn change(tree: &Tree, random: &mut Random) -> Tree {
    let mut new = tree.clone();
    let paths: Vec<&String> = tree.keys().collect();
    for path in &paths {
        match random.below(20) {
            0..4 => {}
            4..13 => edit_at(&mut new, path, random),
            13 => drop(new.remove(*path)),
            14 | 15 => {
                // Moved, and often changed.
                let to = name(random);
                if !new.contains_key(&to)
                    && let Some(file) = new.remove(*path)
                {
                    new.insert(to.clone(), file);
                    if one_in(random, 2) {
                        edit_at(&mut new, &to, random);
                    }
                }
            }
            16 => {
                // Copied, and often changed.
                let (to, file) = (name(random), tree[*path].clone());
                if !new.contains_key(&to) {
                    new.insert(to.clone(), file);
                    if one_in(random, 2) {
                        edit_at(&mut new, &to, random);
                    }
                    edit_at(&mut new, path, random);
                }
            }
            17 => {
                if let Some(file) = new.get_mut(*path) {
                    file.is_executable = !file.is_executable;
                }
                if one_in(random, 2) {
                    edit_at(&mut new, path, random);
                }
            }
            18 => {
                // Two files change places.
                let other = *pick(random, &paths);
                if let (Some(one), Some(two)) = (new.get(*path).cloned(), new.get(other).cloned()) {
                    new.insert((*path).clone(), two);
                    new.insert(other.clone(), one);
                }
            }
            _ => {
                if let Some(file) = new.get_mut(*path) {
                    file.bytes = content(random);
                }
            }
        }
    }
    if one_in(random, 4) {
        let file = File { bytes: content(random), is_executable: one_in(random, 5) };
        new.entry(name(random)).or_insert(file);
    }
    new
}

fn edit_at(tree: &mut Tree, path: &str, random: &mut Random) {
    if let Some(file) = tree.get_mut(path) {
        for _ in 0..=random.below(3) {
            file.bytes = edit(&file.bytes, random);
        }
    }
}

/// Some bytes after one edit.
pub(crate) fn edit(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let ends = Ends::like(bytes);
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(lines.len() + 1);
    let new = |random: &mut Random| [line(random).as_bytes(), ends.of(random)].concat();
    match random.below(16) {
        0..5 => {
            // A last line that is open gets its end first.
            if at == lines.len() && lines.last().is_some_and(|last| !last.ends_with(b"\n")) {
                return [bytes, b"\n".as_slice(), &new(random)].concat();
            }
            let many: Vec<Vec<u8>> = (0..=random.below(3)).map(|_| new(random)).collect();
            lines.splice(at..at, many);
        }
        5..8 => {
            let end = (at + 1 + random.below(3)).min(lines.len());
            lines.drain(at..end);
        }
        8..12 if at < lines.len() => {
            let is_open = !lines[at].ends_with(b"\n");
            let text = new(random);
            lines[at] = if is_open { open(text) } else { text };
        }
        12 if at < lines.len() && lines[at].ends_with(b"\n") => {
            // Twice, as lines often are.
            let line = lines[at].clone();
            lines.insert(at, line);
        }
        13 => return if bytes.ends_with(b"\n") { open(bytes.to_vec()) } else { [bytes, b"\n"].concat() },
        14 if at < lines.len() => {
            lines[at] = match lines[at].strip_suffix(b"\r\n") {
                Some(text) => [text, b"\n"].concat(),
                None => lines[at].strip_suffix(b"\n").map_or(lines[at].clone(), |text| [text, b"\r\n"].concat()),
            };
        }
        15 if one_in(random, 3) => {
            let mark = b"\xef\xbb\xbf";
            return bytes.strip_prefix(mark).map_or_else(|| [mark, bytes].concat(), <[u8]>::to_vec);
        }
        _ => {}
    }
    lines.concat()
}
