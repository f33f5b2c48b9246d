//! What a file patch asks for, in the manner of a diff, before it is planned.

use std::borrow::Cow;
use std::fmt::Write as _;

use aptix_model::batch::{
    Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Chunk, Content, EditorCommand, FileEdit, FilePatch, GitKind,
    GitPatch, HunkLine, LineKind, Occurrence, Operation, Presence, Replacement, Scope, SearchChange, SearchOperation,
    Target,
};
use aptix_model::hunk_counts::count_sides;

use super::untrusted::Name;

/// Shows a file patch, the lines it expects and the new lines under the line numbers it states, in parts: what there is to say of the file, then each change, with what is said above it alone.
pub(crate) fn parts(patch: &FilePatch) -> Vec<Vec<u8>> {
    let path = Name(patch.target.as_str());
    let mut head = format!("--- {path}\n+++ {path}\n");
    if let Target::Readings(readings) = &patch.target {
        let names: Vec<_> = readings.all().map(|name| Name(name).to_string()).collect();
        let _ = writeln!(head, "the names of the diff mean one of these files: {}", names.join(", "));
    }
    let changes = match &patch.edit {
        FileEdit::CreateFile(create) => {
            describe_content(&mut head, &create.content, "the whole file");
            Vec::new()
        }
        FileEdit::WriteFile(write) => {
            let what = match write.presence {
                Presence::Absent => "a new file",
                Presence::Present => "the whole file, in the place of the one that is there",
                Presence::Either => "the whole file",
            };
            describe_content(&mut head, &write.content, what);
            Vec::new()
        }
        FileEdit::DeleteFile => {
            head.push_str("the file is deleted\n");
            Vec::new()
        }
        FileEdit::Revert(revert) => {
            let _ = writeln!(head, "what batch {} did to the file is taken back", revert.batch);
            Vec::new()
        }
        FileEdit::LocalChange => {
            head.push_str("the file was changed on the workstation itself\n");
            Vec::new()
        }
        FileEdit::LinePatch(lines) => each(&lines.changes, |text, change| describe(text, &change.operation)),
        FileEdit::SearchPatch(patch) => each(&patch.changes, describe_search),
        FileEdit::EditorCommands(edit) => each(&edit.commands, describe_command),
        FileEdit::Replacements(all) => each(&all.steps, describe_replacement),
        FileEdit::AnchorEdit(edit) => each(std::slice::from_ref(edit), describe_anchored),
        FileEdit::GitPatch(patch) => git_described(patch, &mut head),
        FileEdit::GitSeries(parts) => series_described(parts, &mut head),
        FileEdit::ContextPatch(patch) => {
            if let Some(to) = &patch.move_to {
                let _ = writeln!(head, "the file is renamed to {}", Name(to));
            }
            each(&patch.chunks, describe_chunk)
        }
    };
    std::iter::once(head.into_bytes()).chain(changes).collect()
}

fn each<T>(changes: &[T], describe: fn(&mut String, &T)) -> Vec<Vec<u8>> {
    let described = changes.iter().map(|change| {
        let mut text = String::new();
        describe(&mut text, change);
        text.into_bytes()
    });
    described.collect()
}

/// Adds lines that are expected and lines that are new, under the line numbers where each side begins.
fn add_hunk<'a>(
    text: &mut String,
    (old_start, new_start): (i64, i64),
    head: &str,
    old: impl Iterator<Item = &'a str> + Clone,
    new: impl Iterator<Item = &'a str> + Clone,
) {
    let (old_count, new_count) = (old.clone().count(), new.clone().count());
    let _ = writeln!(text, "@@ -{old_start},{old_count} +{new_start},{new_count} @@ {head}");
    old.for_each(|line| _ = writeln!(text, "-{line}"));
    new.for_each(|line| _ = writeln!(text, "+{line}"));
}

fn describe_content(text: &mut String, content: &Content, head: &str) {
    match content {
        Content::Text(content) => add_hunk(text, (0, 1), head, std::iter::empty(), content.lines()),
        Content::Blob(blob) => {
            let _ = writeln!(text, "{head}: the {} bytes with the SHA-256 {}", blob.size_bytes, blob.sha256);
        }
    }
}

fn describe(text: &mut String, operation: &Operation) {
    let (start, head, old, new): (_, _, &[String], &[String]) = match operation {
        Operation::Insert { after_line, new_lines } => {
            (*after_line, format!("insert after line {after_line}"), &[], new_lines)
        }
        Operation::Replace { start_line, end_line, expected_original_lines, new_lines } => {
            let head = format!("replace lines {start_line} to {end_line}");
            (*start_line, head, expected_original_lines, new_lines)
        }
        Operation::Delete { start_line, end_line, expected_original_lines } => {
            (*start_line, format!("delete lines {start_line} to {end_line}"), expected_original_lines, &[])
        }
    };
    // Where the new lines begin depends on the other changes: both sides have the line numbers of the original.
    add_hunk(text, (start, start), &head, old.iter().map(String::as_str), new.iter().map(String::as_str));
}

const REPLACE: &str = "replace the only text like this";

fn describe_search(text: &mut String, change: &SearchChange) {
    let (mut head, old) = match &change.operation {
        SearchOperation::Replace { old_text } => (Cow::from(REPLACE), old_text.as_str()),
        SearchOperation::AppendEof => (Cow::from("append at the end"), ""),
        SearchOperation::PrependBof => (Cow::from("prepend at the start"), ""),
        SearchOperation::Overwrite => (Cow::from("the whole file, in the place of what it holds"), ""),
    };
    if let Some(name) = &change.to_clipboard {
        let _ = write!(head.to_mut(), ", keep the old text in clipboard {name:?}");
    }
    let new = match &change.from_clipboard {
        Some(name) => {
            let _ = write!(head.to_mut(), ", the new text is that of clipboard {name:?}");
            ""
        }
        None => change.new_text.as_deref().unwrap_or_default(),
    };
    if let Some(reindent) = &change.reindent {
        let _ = write!(head.to_mut(), ", every line of it gets {:?} for {:?}", reindent.add, reindent.strip);
    }
    describe_texts(text, 0, &head, (old, new));
}

fn describe_command(text: &mut String, command: &EditorCommand) {
    match command {
        EditorCommand::StrReplace { old_text, new_text } => describe_texts(text, 0, REPLACE, (old_text, new_text)),
        EditorCommand::Insert { after_line, text: new } => {
            describe_texts(text, *after_line, &format!("insert after line {after_line}"), ("", new));
        }
    }
}

fn describe_replacement(text: &mut String, step: &Replacement) {
    let (line, head) = match step.scope {
        Scope::First => (0, Cow::from("replace the first text like this")),
        Scope::All => (0, Cow::from("replace every text like this")),
        Scope::Block { start_line: _ } if step.find.is_empty() => (0, Cow::from("append at the end, or a new file")),
        Scope::Block { start_line: None } => (0, Cow::from("replace the only lines like these")),
        Scope::Block { start_line: Some(line) } => {
            (line, Cow::from(format!("replace the lines like these at or near line {line}")))
        }
    };
    describe_texts(text, line, &head, (&step.find, &step.replace));
}

fn describe_texts(text: &mut String, line: i64, head: &str, (old, new): (&str, &str)) {
    add_hunk(text, (line, line), head, old.split_terminator('\n'), new.split_terminator('\n'));
}

fn describe_anchored(text: &mut String, edit: &AnchorEdit) {
    let (line, head) = match &edit.place {
        AnchorPlace::Range { start_line, end_line: Some(end) } => {
            (*start_line, format!("replace lines {start_line} to {end}"))
        }
        AnchorPlace::Range { start_line, end_line: None } => {
            (*start_line, format!("replace the lines from {start_line} to the end"))
        }
        AnchorPlace::Append => (0, "append at the end".to_owned()),
        AnchorPlace::After(anchor) => (0, format!("insert below {}", named(anchor))),
        AnchorPlace::Before(anchor) => (0, format!("insert above {}", named(anchor))),
        AnchorPlace::Between { start, end, takes_anchors } => {
            let word = if *takes_anchors { "with" } else { "without" };
            (0, format!("replace what is between {} and {}, {word} these lines", named(start), named(end)))
        }
        AnchorPlace::Whole { content_format: _ } => (0, "the whole file, in the place of what it holds".to_owned()),
    };
    describe_texts(text, line, &head, ("", &edit.content));
}

/// A line as its author describes it.
fn named(anchor: &Anchor) -> String {
    let which = match anchor.occurrence {
        None => "the line".to_owned(),
        Some(Occurrence::Number(number)) => format!("line {number} of those"),
        Some(Occurrence::Last) => "the last line".to_owned(),
    };
    let how = match anchor.matching {
        AnchorMatch::Contains => "with",
        AnchorMatch::Equals => "that is",
        AnchorMatch::Regex => "that matches",
    };
    format!("{which} {how} {:?}", anchor.text)
}

/// The hunks of the only edit whose lines need not be text; `head` gets what it says of the file.
fn git_described(patch: &GitPatch, head: &mut String) -> Vec<Vec<u8>> {
    let _ = match &patch.kind {
        GitKind::Modify => Ok(()),
        GitKind::Create => writeln!(head, "a new file"),
        GitKind::Delete => writeln!(head, "the file is deleted"),
        GitKind::Rename { to } => writeln!(head, "the file is renamed to {}", Name(to)),
        GitKind::Copy { from } => writeln!(head, "a copy of {}", Name(from)),
    };
    if let Some(executable) = patch.executable {
        head.push_str(if executable { "it can be executed\n" } else { "it cannot be executed\n" });
    }
    let hunks = patch.hunks.iter().map(|hunk| {
        let (old, new) = hunk.line_counts();
        let place = if hunk.is_unnumbered { " where these lines are" } else { "" };
        let mut text = format!("@@ -{},{old} +{},{new} @@{place}\n", hunk.old_start, hunk.new_start).into_bytes();
        describe_lines(&mut text, &hunk.lines);
        if !hunk.surplus.is_empty() {
            let (old, new) = count_sides(&hunk.surplus);
            text.extend(format!("@@ -0,{old} +0,{new} @@ below them, if the file confirms it\n").into_bytes());
            describe_lines(&mut text, &hunk.surplus);
        }
        text
    });
    hunks.collect()
}

/// The hunks of several diffs of a file; what each says of the file is above its first hunk.
fn series_described(parts: &[GitPatch], head: &mut String) -> Vec<Vec<u8>> {
    let mut changes: Vec<Vec<u8>> = Vec::new();
    let mut above = std::mem::take(head);
    for part in parts {
        let mut hunks = git_described(part, &mut above).into_iter();
        match (hunks.next(), changes.is_empty()) {
            (None, _) => continue,
            (Some(first), true) => {
                head.push_str(&std::mem::take(&mut above));
                changes.push(first);
            }
            (Some(first), false) => changes.push([std::mem::take(&mut above).into_bytes(), first].concat()),
        }
        changes.extend(hunks);
    }
    match changes.last_mut() {
        Some(last) => last.extend(above.into_bytes()),
        None => head.push_str(&above),
    }
    changes
}

fn describe_lines(text: &mut Vec<u8>, lines: &[HunkLine]) {
    for line in lines {
        let (bytes, end) = match line.bytes.strip_suffix(b"\n") {
            Some(bytes) => (bytes, "\n"),
            None => (line.bytes.as_slice(), "\n\\ No newline at end of file\n"),
        };
        text.extend_from_slice(sign(line.kind).as_bytes());
        text.extend_from_slice(bytes);
        text.extend_from_slice(end.as_bytes());
    }
}

fn describe_chunk(text: &mut String, chunk: &Chunk) {
    let count = |other| chunk.lines.iter().filter(|line| line.kind != other).count();
    let (old, new) = (count(LineKind::Added), count(LineKind::Removed));
    let _ = write!(text, "@@ -0,{old} +0,{new} @@ where these lines stand");
    for anchor in &chunk.anchors {
        let _ = write!(text, ", below {anchor:?}");
    }
    text.push_str(if chunk.is_at_end { ", at the end of the file\n" } else { "\n" });
    for line in &chunk.lines {
        let _ = writeln!(text, "{}{}", sign(line.kind), line.text);
    }
}

const fn sign(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Context => " ",
        LineKind::Removed => "-",
        LineKind::Added => "+",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::batch::{
        ChunkLine, ContextPatch, EditorCommands, Hunk, Reindent, Replacements, SearchPatch, WriteFile,
    };

    fn check(edit: FileEdit, expected: impl AsRef<[u8]>) {
        let patch = FilePatch { target: Target::Path("a".into()), key: None, label: None, edit };
        let described = parts(&patch).concat();
        assert_eq!(described.strip_prefix(b"--- a\n+++ a\n"), Some(expected.as_ref()));
    }

    #[test]
    fn every_kind_of_edit_is_shown() {
        let write = |presence| {
            FileEdit::WriteFile(WriteFile { content: Content::Text("x\n".into()), presence, content_format: None })
        };
        check(write(Presence::Absent), "@@ -0,0 +1,1 @@ a new file\n+x\n");
        check(write(Presence::Present), "@@ -0,0 +1,1 @@ the whole file, in the place of the one that is there\n+x\n");
        check(FileEdit::DeleteFile, "the file is deleted\n");

        let change = |operation, new_text: Option<&str>| SearchChange {
            operation,
            new_text: new_text.map(Into::into),
            to_clipboard: None,
            from_clipboard: None,
            reindent: None,
        };
        let replace = change(SearchOperation::Replace { old_text: "old\n".into() }, Some("new\nnewer\n"));
        let moved = SearchChange {
            from_clipboard: Some("c\n".into()),
            reindent: Some(Reindent { strip: "\t".into(), add: "  ".into() }),
            ..change(SearchOperation::PrependBof, None)
        };
        let kept = SearchChange { to_clipboard: Some("c".into()), new_text: None, ..replace.clone() };
        let changes = vec![replace, change(SearchOperation::AppendEof, Some("end")), kept, moved];
        check(
            FileEdit::SearchPatch(SearchPatch { changes }),
            "@@ -0,1 +0,2 @@ replace the only text like this\n-old\n+new\n+newer\n\
             @@ -0,0 +0,1 @@ append at the end\n+end\n\
             @@ -0,1 +0,0 @@ replace the only text like this, keep the old text in clipboard \"c\"\n-old\n\
             @@ -0,0 +0,0 @@ prepend at the start, the new text is that of clipboard \"c\\n\", every line of it gets \
             \"  \" for \"\\t\"\n",
        );

        let commands = vec![
            EditorCommand::StrReplace { old_text: "old\n".into(), new_text: "new".into() },
            EditorCommand::Insert { after_line: 7, text: "new\n".into() },
        ];
        check(
            FileEdit::EditorCommands(EditorCommands { commands }),
            "@@ -0,1 +0,1 @@ replace the only text like this\n-old\n+new\n@@ -7,0 +7,1 @@ insert after line 7\n+new\n",
        );
    }

    #[test]
    fn edits_at_an_anchor_and_in_steps_are_shown() {
        let anchor = |matching, occurrence| Anchor { text: "a\"b".into(), matching, occurrence };
        let place = AnchorPlace::Between {
            start: anchor(AnchorMatch::Equals, Some(Occurrence::Number(2))),
            end: anchor(AnchorMatch::Regex, Some(Occurrence::Last)),
            takes_anchors: true,
        };
        check(
            FileEdit::AnchorEdit(AnchorEdit { place, content: "new\n".into() }),
            "@@ -0,0 +0,1 @@ replace what is between line 2 of those that is \"a\\\"b\" and the last line that matches \
             \"a\\\"b\", with these lines\n+new\n",
        );
        let place = AnchorPlace::After(anchor(AnchorMatch::Contains, None));
        check(
            FileEdit::AnchorEdit(AnchorEdit { place, content: "new".into() }),
            "@@ -0,0 +0,1 @@ insert below the line with \"a\\\"b\"\n+new\n",
        );

        let step = |scope, find: &str| Replacement { find: find.into(), replace: "new".into(), scope };
        let steps =
            vec![step(Scope::All, "old"), step(Scope::Block { start_line: Some(3) }, "old"), step(Scope::First, "old")];
        check(
            FileEdit::Replacements(Replacements { steps }),
            "@@ -0,1 +0,1 @@ replace every text like this\n-old\n+new\n\
             @@ -3,1 +3,1 @@ replace the lines like these at or near line 3\n-old\n+new\n\
             @@ -0,1 +0,1 @@ replace the first text like this\n-old\n+new\n",
        );
    }

    fn git_patch(kind: GitKind, hunks: Vec<Hunk>) -> GitPatch {
        GitPatch { kind, executable: None, base_id: None, result_id: None, is_unprefixed: false, hunks }
    }

    /// A path may hold line feeds: none of them begins a line of a diff.
    #[test]
    fn a_path_is_one_line() {
        let path = "a\n@@ -1 +1 @@\n-x\n+y".to_owned();
        let kinds = [GitKind::Rename { to: path.clone() }, GitKind::Copy { from: path.clone() }];
        let git = |kind| FileEdit::GitPatch(git_patch(kind, Vec::new()));
        let moved = FileEdit::ContextPatch(ContextPatch { move_to: Some(path.clone()), chunks: Vec::new() });
        for edit in kinds.map(git).into_iter().chain([moved]) {
            let patch = FilePatch { target: Target::Path(path.clone()), key: None, label: None, edit };
            let described = String::from_utf8(parts(&patch).concat()).unwrap();
            assert!(!described.contains("\n@@") && described.contains("a\\u{a}@@"), "{described}");
        }
    }

    #[test]
    fn hunks_are_counted_by_their_lines() {
        let line = |kind, bytes: &[u8]| HunkLine { kind, bytes: bytes.to_vec() };
        let lines = vec![
            line(LineKind::Context, b"same\n"),
            line(LineKind::Removed, b"old\xff\n"),
            line(LineKind::Added, b"new"),
        ];
        let surplus = vec![line(LineKind::Removed, b"item\n")];
        let hunk =
            Hunk { old_start: 4, old_count: 90, new_start: 5, new_count: 0, is_unnumbered: false, lines, surplus };
        let git = GitPatch { executable: Some(true), ..git_patch(GitKind::Rename { to: "b".into() }, vec![hunk]) };
        check(
            FileEdit::GitPatch(git),
            b"the file is renamed to b\nit can be executed\n@@ -4,2 +5,2 @@\n same\n-old\xff\n+new\n\
             \\ No newline at end of file\n@@ -0,1 +0,0 @@ below them, if the file confirms it\n-item\n",
        );
        let line = |kind, text: &str| ChunkLine { kind, text: text.into() };
        let chunk = Chunk {
            anchors: vec!["fn main".into()],
            lines: vec![line(LineKind::Removed, "old"), line(LineKind::Context, "same")],
            is_at_end: true,
        };
        check(
            FileEdit::ContextPatch(ContextPatch { move_to: None, chunks: vec![chunk] }),
            "@@ -0,2 +0,1 @@ where these lines stand, below \"fn main\", at the end of the file\n-old\n same\n",
        );
    }
}
