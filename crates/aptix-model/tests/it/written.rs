//! A batch that is written down is read back as the batch that it was, in each dialect that is written, whatever its texts hold.

use aptix_model::batch::{
    Batch, Change, Content, EditorCommand, EditorCommands, FileEdit, FilePatch, LinePatch, Operation, Presence,
    Reindent, Replacement, Replacements, Scope, SearchChange, SearchOperation, SearchPatch, Target, WriteFile,
};
use aptix_model::documents::{Dialect, parse, write};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Text of what dialects, JSON and Markdown set things apart by.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "\n",
        "\r\n",
        "\"",
        "\\",
        "\u{e9}",
        "\t",
        "\u{202e}",
        "\u{1f980}",
        "```",
        "<<<<<<<",
        "@@ ",
        "\0",
        "{}",
        " ",
    ];
    vec(select(pieces.to_vec()), 0..6).prop_map(|pieces| pieces.concat())
}

/// An author's words about something, if there are any: empty ones are none.
fn words_of() -> impl Strategy<Value = Option<String>> {
    of(text().prop_map(|text| text + "w"))
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    vec(text().prop_map(|text| text.replace(['\r', '\n'], "")), 1..4)
}

fn change() -> impl Strategy<Value = Change> {
    let operation = (0..3, 1_i64..9, lines(), lines()).prop_map(|(kind, start_line, old, new_lines)| {
        let end_line = start_line + i64::try_from(old.len()).unwrap() - 1;
        match kind {
            0 => Operation::Insert { after_line: start_line, new_lines },
            1 => Operation::Replace { start_line, end_line, expected_original_lines: old, new_lines },
            _ => Operation::Delete { start_line, end_line, expected_original_lines: old },
        }
    });
    (words_of(), words_of(), operation).prop_map(|(key, description, operation)| Change { key, description, operation })
}

fn search_change() -> impl Strategy<Value = SearchChange> {
    // What would add nothing and take nothing away is none.
    let reindent = of((text(), text()).prop_map(|(strip, add)| Reindent { strip, add: add + "x" }));
    (0..4, text(), text(), of(Just("kept".to_owned())), any::<bool>(), reindent).prop_map(
        |(kind, old_text, new, to, is_pasted, reindent)| {
            let operation = match kind {
                0 => SearchOperation::Replace { old_text },
                1 => SearchOperation::AppendEof,
                2 => SearchOperation::PrependBof,
                _ => SearchOperation::Overwrite,
            };
            let (new_text, from_clipboard) =
                if is_pasted { (None, Some("clip".to_owned())) } else { (Some(new), None) };
            // Only what is replaced can be kept.
            let to_clipboard = to.filter(|_| kind == 0);
            SearchChange { operation, new_text, to_clipboard, from_clipboard, reindent }
        },
    )
}

fn replacement() -> impl Strategy<Value = Replacement> {
    let scope = any::<bool>().prop_map(|is_all| if is_all { Scope::All } else { Scope::First });
    (text(), text(), scope).prop_map(|(find, replace, scope)| Replacement { find, replace, scope })
}

fn command() -> impl Strategy<Value = EditorCommand> {
    (any::<bool>(), text(), text(), 0_i64..9).prop_map(|(is_insert, old_text, text, after_line)| match is_insert {
        true => EditorCommand::Insert { after_line, text },
        false => EditorCommand::StrReplace { old_text, new_text: text },
    })
}

fn whole_file() -> impl Strategy<Value = FileEdit> {
    let presence = select(vec![Presence::Absent, Presence::Present, Presence::Either]);
    let format = of(Just("verbatim".to_owned()));
    let write = (text(), presence, format).prop_map(|(text, presence, content_format)| {
        FileEdit::WriteFile(WriteFile { content: Content::Text(text), presence, content_format })
    });
    prop_oneof![4 => write, 1 => Just(FileEdit::DeleteFile)]
}

/// Edits of a dialect for so many files as it has room for.
fn edits(dialect: Dialect) -> BoxedStrategy<Vec<FileEdit>> {
    let line_patch = ("[0-9a-f]{64}", vec(change(), 1..4))
        .prop_map(|(original_sha256, changes)| FileEdit::LinePatch(LinePatch { original_sha256, changes }));
    let search = vec(search_change(), 1..4).prop_map(|changes| FileEdit::SearchPatch(SearchPatch { changes }));
    let structured = vec(replacement(), 1..4).prop_map(|steps| FileEdit::Replacements(Replacements { steps }));
    let commands = vec(command(), 1..4).prop_map(|commands| FileEdit::EditorCommands(EditorCommands { commands }));
    match dialect {
        Dialect::LinePatch => vec(line_patch, 1..4).boxed(),
        Dialect::SearchPatch => vec(search, 1..2).boxed(),
        Dialect::StructuredPatch => vec(structured, 1..4).boxed(),
        Dialect::StrReplace => vec(commands, 1..4).boxed(),
        _ => vec(whole_file(), 1..4).boxed(),
    }
}

fn written(dialect: Dialect) -> impl Strategy<Value = Batch> {
    // No other dialect has words about a batch or a file.
    let words = move || if dialect == Dialect::LinePatch { words_of().boxed() } else { Just(None).boxed() };
    let files = edits(dialect).prop_flat_map(move |edits| {
        let words = vec((words(), words()), edits.len());
        words.prop_map(move |words| {
            let files = edits.iter().cloned().zip(words).enumerate();
            files
                .map(|(at, (edit, (key, label)))| FilePatch { target: target(dialect, at), key, label, edit })
                .collect()
        })
    });
    (words(), words(), files).prop_map(|(label, key, files)| Batch { label, key, files, ..Batch::default() })
}

fn target(dialect: Dialect, at: usize) -> Target {
    match dialect {
        Dialect::LinePatch => Target::DocPath(format!("ws/\u{fc} \"{at}\".txt")),
        _ => Target::Path(format!("D\u{fc}r \"{at}\".txt")),
    }
}

proptest! {
    #[test]
    fn what_is_written_down_is_read_back(
        (dialect, batch) in select(vec![
            Dialect::LinePatch, Dialect::SearchPatch, Dialect::StructuredPatch, Dialect::StrReplace, Dialect::FileBundle,
        ]).prop_flat_map(|dialect| (Just(dialect), written(dialect)))
    ) {
        let document = write(&batch, dialect);
        let Some(document) = document else {
            // It has no place for some texts, and reads back what it writes itself.
            prop_assert_eq!(dialect, Dialect::StrReplace);
            return Ok(());
        };
        let read = parse(document.as_bytes(), Some(dialect)).map(|read| read.batch);
        prop_assert_eq!(read.as_ref(), Ok(&batch), "{}", document);
        // What is one dialect is never taken for another.
        let recognised = parse(document.as_bytes(), None).map(|read| (read.dialect, read.batch));
        prop_assert_eq!(recognised, Ok((dialect, batch)), "{}", document);
    }
}
