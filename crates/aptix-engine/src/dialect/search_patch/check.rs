//! The changes of a search patch: old text, new text, clipboards and prefixes (REQ-PATCH-001 to 004); and commands of
//! the text-editor tool, which are planned as such changes.

use alloc::vec::Vec;

use aptix_model::batch::{EditorCommand, Reindent, SearchChange, SearchOperation};
use aptix_model::failure::is_invisible;
use aptix_model::limits::CLIPBOARD_NAME_CHARS;
use aptix_model::lines::LineAnchor;
use memchr::memchr2;

use super::tokens;
use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::target::Base;

/// One change of a search patch, checked.
#[derive(Clone, Debug)]
pub struct ValidSearch<'a> {
    /// Where its text is inserted.
    pub spot: Spot<'a>,
    /// The new text.
    pub source: Source<'a>,
    /// The clipboard that keeps the text that was found.
    pub keep: Option<&'a str>,
    /// How the new lines are reindented.
    pub reindent: Option<&'a Reindent>,
}

/// Where the text of a search change is inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot<'a> {
    /// In the place of this text, which is not empty.
    Replace(&'a str),
    /// Below everything.
    End,
    /// Above everything.
    Top,
    /// In the place of everything.
    Everything,
    /// Below a line, as whole lines.
    After(LineAnchor),
}

/// The new text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source<'a> {
    /// This text.
    Text(&'a str),
    /// A clipboard's text.
    Clipboard(&'a str),
    /// The text that was found, which so stays.
    Found,
}

/// Checks changes one by one and, as far as no file is needed, against each other; `None` when anything is wrong.
pub(crate) fn check<'a>(changes: &'a [SearchChange], site: &mut Site<'_, 'a>) -> Option<(Base, Vec<ValidSearch<'a>>)> {
    if changes.is_empty() {
        site.report("changes", || Violation::Empty { what: "change" });
        return None;
    }
    let mut valid = Vec::with_capacity(changes.len());
    let mut base = Base::Any;
    for (index, change) in changes.iter().enumerate() {
        site.change = Some(index);
        valid.extend(check_one(change, site));
        match change.operation {
            SearchOperation::Replace { .. } => base = Base::MustExist,
            SearchOperation::Overwrite if changes.len() > 1 => {
                site.report("operation", || Violation::OverwriteBeside { others: changes.len() - 1 });
            }
            _ => {}
        }
    }
    site.change = None;
    if let Some(violation) = tokens::check(changes) {
        site.report("changes", || violation);
        return None;
    }
    (valid.len() == changes.len()).then_some((base, valid))
}

fn check_one<'a>(change: &'a SearchChange, site: &mut Site<'_, 'a>) -> Option<ValidSearch<'a>> {
    let spot = check_spot(&change.operation, site);
    check_name("toClipboard", change.to_clipboard.as_deref(), site);
    check_name("fromClipboard", change.from_clipboard.as_deref(), site);
    check_reindent(change.reindent.as_ref(), site);
    site.check_nul("newText", change.new_text.as_deref());
    let is_replace = matches!(change.operation, SearchOperation::Replace { .. });
    if change.to_clipboard.is_some() && !is_replace {
        site.report("toClipboard", || Violation::NothingToKeep);
    }
    let source = match (&change.from_clipboard, &change.new_text) {
        (Some(name), _) if change.to_clipboard.as_ref() == Some(name) => {
            if change.reindent.is_some() {
                site.report("reindent", || Violation::ReindentOfCopy);
            }
            Source::Found
        }
        (Some(name), _) => Source::Clipboard(name),
        (None, Some(text)) => Source::Text(text),
        (None, None) if is_replace => Source::Text(""),
        (None, None) => {
            site.report("newText", || Violation::NoNewText);
            return None;
        }
    };
    let keep = change.to_clipboard.as_deref();
    Some(ValidSearch { spot: spot?, source, keep, reindent: change.reindent.as_ref() })
}

/// Checks commands of the text-editor tool; `None` when anything is wrong.
pub(crate) fn check_commands<'a>(
    commands: &'a [EditorCommand],
    site: &mut Site<'_, 'a>,
) -> Option<(Base, Vec<ValidSearch<'a>>)> {
    if commands.is_empty() {
        site.report("changes", || Violation::Empty { what: "change" });
        return None;
    }
    let mut valid = Vec::with_capacity(commands.len());
    for (index, command) in commands.iter().enumerate() {
        site.change = Some(index);
        let (spot, text) = match command {
            EditorCommand::StrReplace { old_text, new_text } => (check_old_text(old_text, site), new_text),
            EditorCommand::Insert { after_line, text } => {
                let anchor = LineAnchor::new(*after_line);
                let anchor = anchor.map_err(|error| site.report("insertLine", || Violation::Line(error)));
                (anchor.ok().map(Spot::After), text)
            }
        };
        site.check_nul("newText", Some(text));
        valid.extend(spot.map(|spot| ValidSearch { spot, source: Source::Text(text), keep: None, reindent: None }));
    }
    site.change = None;
    (valid.len() == commands.len()).then_some((Base::MustExist, valid))
}

fn check_old_text<'a>(old_text: &'a str, site: &mut Site<'_, 'a>) -> Option<Spot<'a>> {
    if old_text.is_empty() {
        site.report("oldText", || Violation::EmptyFind);
        return None;
    }
    site.check_nul("oldText", Some(old_text));
    Some(Spot::Replace(old_text))
}

fn check_spot<'a>(operation: &'a SearchOperation, site: &mut Site<'_, 'a>) -> Option<Spot<'a>> {
    match operation {
        SearchOperation::Replace { old_text } => check_old_text(old_text, site),
        SearchOperation::AppendEof => Some(Spot::End),
        SearchOperation::PrependBof => Some(Spot::Top),
        SearchOperation::Overwrite => Some(Spot::Everything),
    }
}

fn check_name(field: &str, name: Option<&str>, site: &mut Site<'_, '_>) {
    let Some(name) = name else { return };
    let is_printable = |character: char| !character.is_control() && !is_invisible(character);
    let is_short = name.chars().nth(CLIPBOARD_NAME_CHARS).is_none();
    if name.is_empty() || !is_short || !name.chars().take(CLIPBOARD_NAME_CHARS).all(is_printable) {
        site.report(field, || Violation::ClipboardName);
    }
}

fn check_reindent(reindent: Option<&Reindent>, site: &mut Site<'_, '_>) {
    let Some(reindent) = reindent else { return };
    for (field, prefix) in [("reindent.strip", &reindent.strip), ("reindent.add", &reindent.add)] {
        if let Some(offset) = memchr2(b'\n', b'\r', prefix.as_bytes()) {
            site.report(field, || Violation::PrefixNewline { offset });
        }
        site.check_nul(field, Some(prefix));
    }
}
