//! What commands print: the fixed JSON object, or text for people in which nothing can hide.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::batch::Batch;
use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;
use serde::Serialize;

use crate::apply::Refusal;
use crate::apply::path_style::PathStyle;
use crate::present::answer::{Shown, answer};
use crate::present::text::{batch_text, failure_text};

use super::exit::Exit;
use super::progress;

/// How a command prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

impl Form {
    pub(super) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Prints what there is to say about a batch.
pub(super) fn show(form: Form, shown: &Shown<'_>) -> Exit {
    progress::end();
    match form {
        Form::Json => print_json(shown),
        Form::Text => print_text(shown),
    }
}

/// Prints why there is nothing to say about any batch.
pub(super) fn show_refusal(form: Form, refusal: &Refusal) {
    let batch = Batch::default();
    show(
        form,
        &Shown {
            batch: &batch,
            dry_run: false,
            paths: PathStyle::InRoot,
            stored: None,
            outcome: Err(refusal),
            warnings: &[],
        },
    );
}

/// Prints the JSON object of a command that ended before it could say anything else; to people it is said elsewhere.
pub(super) fn show_broken_off(form: Form, why: Failure) {
    if form == Form::Json {
        show_refusal(form, &why.into());
    }
}

/// Whether the one JSON object was printed, or is being printed.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Prints the one JSON object about a batch.
fn print_json(shown: &Shown<'_>) -> Exit {
    print_object(&answer(shown, command_for))
}

/// The command that takes a document of a dialect.
fn command_for(dialect: &str) -> Option<String> {
    Some(format!("aptix apply --dialect {dialect}"))
}

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

/// Prints the diff and one line a file to stdout, or what is wrong to stderr.
fn print_text(shown: &Shown<'_>) -> Exit {
    for warning in shown.all_warnings() {
        say(&format!("warning: {}: {}", warning.code, Visible(&warning.message)));
    }
    let printed = print(&batch_text(shown));
    match shown.outcome {
        Ok(_) => printed,
        Err(refusal) => {
            refusal.failures.iter().for_each(|failure| say(failure_text(failure).trim_end()));
            Exit::Refused
        }
    }
}

/// Prints to stdout, without colour where it is not wanted. Somebody who stopped listening is not an error.
pub(super) fn print(text: &str) -> Exit {
    let choice = anstream::AutoStream::choice(&std::io::stdout());
    let mut shown = anstream::AutoStream::new(Vec::new(), choice);
    match shown.write_all(text.as_bytes()) {
        Ok(()) => print_bytes(&shown.into_inner()),
        failed => printed(failed),
    }
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

/// Says that a command was interrupted, in whatever form it prints.
pub(super) fn interrupted(form: Form, said: &str) -> Exit {
    show_broken_off(form, Failure::new(Reason::Interrupted, said));
    say(said);
    Exit::Interrupted
}
