//! What commands print: the fixed JSON object, or text for people in which nothing can hide.

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::batch::Batch;
use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;
use aptix_model::report::Warning;
use aptix_model::tools::result::batch_object::object;
use serde::Serialize;

use crate::present::text::{batch_text, failure_text, head};
use crate::present::view::BatchView;
use crate::workspace::fs::terminal::Terminal;

use super::exit::{Exit, Refused};
use super::progress;

/// How a command prints: text for people, or one JSON object.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct Form {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints what became of a batch: the JSON object; or the diff and one line a file to stdout, and to stderr why the command, or a
/// file of the batch, was refused.
pub(super) fn show(form: Form, view: &BatchView<'_>) -> Exit {
    progress::end();
    if form.json {
        return print_object(&object(&view.result(), |dialect| Some(format!("aptix apply --dialect {dialect}"))));
    }
    view.result().all_warnings().for_each(warn);
    if view.is_record {
        return print_long(batch_text(view));
    }
    let printed = print(&batch_text(view));
    if view.failures().is_empty() {
        return printed;
    }
    view.failures().iter().for_each(|failure| say(failure_text(failure).trim_end()));
    Exit::Refused
}

/// Prints what a batch is known as, for people.
pub(super) fn print_head(form: Form, view: &BatchView<'_>) {
    if !form.json {
        progress::end();
        print(&head(view));
    }
}

/// Prints why a command changed nothing, where there is no batch to print.
pub(super) fn show_refused(form: Form, refused: &Refused) -> Exit {
    show(form, &BatchView::new(&Batch::default(), Err(&refused.refusal)));
    refused.exit
}

/// Prints the JSON object of a command that ended before it could print anything else; for people, stderr has why.
pub(super) fn show_broken_off(form: Form, why: Failure) {
    if form.json {
        show_refused(form, &why.into());
    }
}

/// Whether the one JSON object was printed, or is being printed.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Prints a JSON object, unless there was one already: work that was broken off may still come to its end.
pub(super) fn print_object(object: &impl Serialize) -> Exit {
    if ANSWERED.swap(true, Ordering::SeqCst) {
        return Exit::Done;
    }
    match serde_json::to_string_pretty(object) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => {
            say(&format!("error: cannot print the answer: {error}"));
            Exit::Environment
        }
    }
}

/// Prints to stdout, without colour where it is not wanted. A reader that went away is no error.
pub(super) fn print(text: &str) -> Exit {
    print_bytes(&in_colours(text))
}

/// Whether what takes more than a screen is printed at once.
static HAS_NO_PAGER: AtomicBool = AtomicBool::new(false);
/// What is shown at the end of the command.
static KEPT: OnceLock<String> = OnceLock::new();

/// Has everything printed at once.
pub(super) fn without_pager() {
    HAS_NO_PAGER.store(true, Ordering::Relaxed);
}

/// Prints a text; keeps one that the terminal has too few rows for, for the pager.
pub(super) fn print_long(text: String) -> Exit {
    let is_wanted = !HAS_NO_PAGER.load(Ordering::Relaxed) && std::io::stdout().is_terminal();
    let rows = Terminal::open().filter(|_| is_wanted).map_or(0, |terminal| terminal.size().0);
    if rows == 0 || text.lines().count() < usize::from(rows) {
        return print(&text);
    }
    match KEPT.set(text) {
        Ok(()) => Exit::Done,
        Err(text) => print(&text),
    }
}

/// What is left to be shown by the pager.
pub(super) fn kept() -> Option<&'static str> {
    KEPT.get().map(String::as_str)
}

/// A text as stdout shows it: without colour where it is not wanted.
pub(super) fn in_colours(text: &str) -> Vec<u8> {
    let choice = anstream::AutoStream::choice(&std::io::stdout());
    let mut shown = anstream::AutoStream::new(Vec::with_capacity(text.len()), choice);
    // Memory takes everything.
    let _ = shown.write_all(text.as_bytes());
    shown.into_inner()
}

/// Prints a file's bytes to stdout, as they are.
pub(super) fn print_bytes(bytes: &[u8]) -> Exit {
    let mut stdout = std::io::stdout().lock();
    printed(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

fn printed(written: std::io::Result<()>) -> Exit {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            Exit::Environment
        }
        _ => Exit::Done,
    }
}

/// Prints a line to stderr.
pub(super) fn say(text: &str) {
    progress::make_way();
    // There is nowhere left to complain to.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints a warning about a document, a batch or a workspace.
pub(super) fn warn(warning: &Warning) {
    say(&format!("warning: {}: {}", warning.code, Visible(&warning.message)));
}

/// Prints that a command was interrupted.
pub(super) fn interrupted(form: Form, message: &str) -> Exit {
    show_broken_off(form, Failure::new(Reason::Interrupted, message));
    say(message);
    Exit::Interrupted
}
